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
    *("Posterior.log_density", "Posterior.transform", "Posterior.of", "Posterior.marginal", "Draws.grow"),
    *("LinearRegression", "LinearRegression.fit", "models.student_t", "models.fit_multiclass_rvm", "science.identify"),
    *("science.corner_frequency", "science.read_spectra", "science.read_spectra_csv"),
]
SLOW_VALUES = {"many fits"}
OPTIONS = set(ENTRIES["fit"].arguments) - {"log_density", "start", "data", "hyper"}


def test_every_public_name_has_its_place():
    """Called here, tried with its own package, or made by us alone; no list names what is not there."""
    functions = {name for name in qd.__all__ if callable(getattr(qd, name))}
    assert functions <= set(ENTRIES) | hostile.MADE_BY_US | hostile.FRONT_ENDS
    assert set(QUICK) <= set(ENTRIES)


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
