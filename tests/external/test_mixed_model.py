"""Mixed models by formula, on small simulated tables."""

import numpy as np
import pandas
import pytest

from quenched.models import MixedModel

pytest.importorskip("formulae")


def simulated():
    random = np.random.default_rng(11)
    group = np.repeat(np.arange(12), 8)
    x = random.standard_normal(96)
    y = 1.0 + 0.5 * x + 0.8 * random.standard_normal(12)[group] + 0.6 * random.standard_normal(96)
    return pandas.DataFrame({"y": y, "x": x, "group": [f"g{one:02d}" for one in group]})


def test_raised_standard_deviations_are_those_of_highest_likelihood():
    """Against the marginal likelihood of the Gaussian model, maximised by itself."""
    from scipy.optimize import minimize
    from scipy.stats import multivariate_normal

    table = simulated()
    model = MixedModel("y ~ x + (1|group)", hyper="raised").fit(table)
    same = table["group"].to_numpy()[:, None] == table["group"].to_numpy()
    design = np.column_stack([np.ones(96), table["x"]])
    prior = (
        np.diag(
            [
                10.0 * table["y"].std(ddof=0) + abs(table["y"].mean()),
                10.0 * table["y"].std(ddof=0) / table["x"].std(ddof=0),
            ]
        )
        ** 2
    )

    def surprise(logs):
        covariance = design @ prior @ design.T + np.exp(2 * logs[0]) * same + np.exp(2 * logs[1]) * np.eye(96)
        return -multivariate_normal(np.zeros(96), covariance).logpdf(table["y"])

    best = minimize(surprise, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    np.testing.assert_allclose(model.sd_.loc[["1|group", "residual"], "mean"], np.exp(best.x), rtol=1e-3)
    assert model.fit_.bound == pytest.approx(-best.fun, abs=1e-3)
    assert list(model.fixed_.index) == ["Intercept", "x"]
    assert list(model.effects_["1|group"].index) == [f"g{one:02d}" for one in range(12)]
    new = model.predict(pandas.DataFrame({"x": [0.0, 0.0], "group": ["g00", "unseen"]}))
    assert new["sd"][1] > 2.0 * new["sd"][0]


def test_what_is_wrong_is_named():
    table = simulated()
    with pytest.raises(ValueError, match="x, twice are not told apart"):
        MixedModel("y ~ x + twice + (1|group)").fit(table.assign(twice=2.0 * table["x"]))
    with pytest.raises(ValueError, match="needs counts"):
        MixedModel("y ~ x + (1|group)", likelihood="poisson").fit(table)
    with pytest.raises(ValueError, match="likelihood='probit'"):
        MixedModel("y ~ x", likelihood="probit").fit(table)


def test_a_long_table_takes_no_square_of_its_rows():
    from quenched.models.mixed.design import read_design

    random = np.random.default_rng(3)
    table = pandas.DataFrame({"y": random.standard_normal(200_000), "x": random.standard_normal(200_000)})
    assert read_design("y ~ x", table, "gaussian").fixed.shape == (200_000, 2)
    with pytest.raises(ValueError, match="not told apart"):
        read_design("y ~ x + z", table.assign(z=2.0 * table["x"]), "gaussian")
