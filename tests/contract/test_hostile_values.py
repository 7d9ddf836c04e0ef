"""What nobody should give, to whatever is public: an answer, or a refusal in our words that names the argument.

The entries are found from the signatures (`hostile.entries`); here the quick ones, in tests/long all of them.
"""

import pytest

import hostile
import quenched as qd

ENTRIES = {entry.name: entry for entry in hostile.entries()}
# Those that compute nothing when they are asked to make something, or to read a file.
QUICK = [
    *("Alternating", "Blocks", "Draws", "Joint", "Model", "Sparse", "Streaming", "Warped", "above", "antithetic"),
    *("below", "dot"),
    *("each", "from_value", "from_value_and_grad", "iid", "interval", "keep_programs", "load", "matched", "regression"),
    *("sobol", "sum_of", "with_gaussian_prior", "Fit.sample", "Fit.save", "Fit.natural", "Posterior.sample"),
    *("NutsStart.covariance_of", "NutsStart.positions", "NutsStart.to_natural", "LinearResponse.n_gradients_for"),
    *("export.nuts_start", "plots.plot_monitor", "plots.plot_marginals"),
    *("Posterior.log_density", "Posterior.transform", "Posterior.of", "Posterior.marginal", "Draws.grow"),
    *("LinearRegression", "LinearRegression.fit", "models.student_t", "models.fit_multiclass_rvm", "science.identify"),
    *("science.corner_frequency", "science.read_spectra", "science.read_spectra_csv"),
]
SLOW_VALUES = {"many fits"}
OPTIONS = set(ENTRIES["fit"].arguments) - {"log_density", "start", "data", "hyper"}


def test_every_public_name_has_its_place():
    """Called here, with its methods, tried with its own package, or made by us alone; no list names what is not there."""
    assert not hostile.untried()
    assert set(QUICK) <= set(ENTRIES)
    public = {name for where in hostile.places() for name in where.__all__}
    assert public >= (hostile.MADE_BY_US | hostile.PARTS | hostile.FRONT_ENDS)


def test_what_is_new_is_missed(monkeypatch):
    """A function, a method of a result and one of an error that nobody has named."""

    def new(wanted):
        return wanted

    def method(self, wanted):
        return wanted

    for one in (new, method):
        monkeypatch.setattr(one, "__module__", "quenched.results")
    monkeypatch.setattr(qd, "novel", new, raising=False)
    monkeypatch.setattr(qd, "__all__", [*qd.__all__, "novel"])
    with pytest.raises(LookupError, match=r"novel asks for wanted.*hostile\.GOOD"):
        hostile.entries()
    monkeypatch.setattr(qd, "__all__", qd.__all__[:-1])
    monkeypatch.setattr(qd.Fit, "novel", method, raising=False)
    with pytest.raises(LookupError, match=r"Fit\.novel asks for wanted"):
        hostile.entries()
    monkeypatch.delattr(qd.Fit, "novel")
    monkeypatch.setattr(qd.FitError, "novel", method, raising=False)
    assert hostile.untried() == {"FitError.novel"}


@pytest.mark.parametrize("name", QUICK)
def test_hostile_values_are_refused_in_our_words(name):
    entry = ENTRIES[name]
    bad = [
        (argument, label, str(found))
        for argument in entry.arguments
        for label, make in hostile.VALUES.items()
        if label not in SLOW_VALUES and (found := hostile.outcome(entry, argument, make())).bad
    ]
    assert not bad


@pytest.mark.parametrize("argument", sorted(OPTIONS))
def test_hostile_options_of_a_fit(argument):
    labels = [label for label in hostile.VALUES if label not in SLOW_VALUES]
    found = {label: hostile.outcome(ENTRIES["fit"], argument, hostile.VALUES[label]()) for label in labels[::4]}
    assert not {label: str(one) for label, one in found.items() if one.bad}
    assert any(one.kind == "ours" for one in found.values())
