"""From a table of spectra to a posterior, and back to predictions."""

import jax
import numpy as np
import pytest
from scipy import stats

import quenched as qd
from quenched.science import GroundMotion, fourier_amplitude
from quenched.science import inversion as model

TRUTH = {"spreading": 1.1, "quality": 250.0, "kappa0": 0.03}
STRESS = {"A": 40.0, "B": 90.0, "C": 200.0}
MAGNITUDE = {"A": 4.8, "B": 5.6, "C": 6.3}
NOISE = 0.2


def simulate(frequencies=25, stations=(15.0, 45.0, 90.0, 140.0), kappa0=TRUTH["kappa0"], top=25.0, noise=NOISE, seed=0):
    rng = np.random.default_rng(seed)
    f = np.geomspace(0.2, top, frequencies)
    event = np.repeat(list(STRESS), len(stations) * len(f))
    distance = np.repeat(np.outer([0.9, 1.0, 1.2], stations).ravel(), len(f))
    frequency = np.tile(f, len(stations) * len(STRESS))
    magnitude = np.array([MAGNITUDE[name] for name in event])
    stress = np.array([STRESS[name] for name in event])
    with jax.enable_x64(True):
        parameters = {**TRUTH, "kappa0": kappa0, "stress_drop": stress}
        amplitude = np.asarray(fourier_amplitude(magnitude, distance, frequency, **parameters))
    amplitude = amplitude * np.exp(noise * rng.standard_normal(len(event)))
    return {"event": event, "Mw": magnitude, "R": distance, "f": frequency, "fas": amplitude}


@pytest.fixture(scope="module")
def table():
    return simulate()


@pytest.fixture(scope="module")
def fitted(table):
    return GroundMotion().fit(table, progress=False)


def without(table, **changes):
    return {**table, **changes}


def test_known_parameters_are_recovered(fitted):
    truth = {**TRUTH, "noise": NOISE}
    for row in fitted.summary():
        true = STRESS[row["event"]] if row["event"] else truth[row["name"]]
        assert abs(row["mean"] - true) < 4 * row["sd"], row["name"]
        assert row["low"] < row["mean"] < row["high"]
        assert row["remark"] == ""
    assert fitted.fit_.converged
    assert fitted.events_ == ["A", "B", "C"]


def test_the_posterior_is_that_of_the_same_density_by_laplace_when_data_are_plenty(fitted, table):
    laplace = GroundMotion().fit(table, using=qd.laplace, progress=False)
    for name in ("spreading", "kappa0", "noise"):
        assert laplace.fit_.mean[name] == pytest.approx(fitted.fit_.mean[name], abs=fitted.fit_.sd[name])
    assert laplace.fit_.check_bound <= fitted.fit_.check_bound + 3 * laplace.fit_.check_error


def test_samples_are_within_the_bounds(fitted):
    samples = fitted.sample(500, seed=3)
    assert samples["stress_drop"].shape == (500, 3)
    for name, (lower, upper) in model.read_bounds(None).items():
        assert (samples[name] > lower).all()
        assert (samples[name] < upper).all()


def test_bands_cover_what_they_say(fitted):
    fresh = simulate(seed=7)
    bands = fitted.predict(fresh, probability=0.9)
    inside = (bands.lower < fresh["fas"]) & (fresh["fas"] < bands.upper)
    assert 0.85 < inside.mean() < 0.95
    assert (bands.model_lower >= bands.lower).all()
    assert (bands.model_upper <= bands.upper).all()
    assert (bands.model_lower < bands.median).all()


def test_the_prediction_error_is_that_of_the_paper(fitted, table):
    assert fitted.prediction_error(table) == pytest.approx(NOISE**2, rel=0.2)
    few = {name: column[:7] for name, column in table.items()}
    samples = fitted.sample(20, seed=5)
    with jax.enable_x64(True):
        total = 0.0
        for i in range(20):
            event = np.array([fitted.events_.index(name) for name in few["event"]])
            parameters = {name: samples[name][i] for name in TRUTH} | {"stress_drop": samples["stress_drop"][i][event]}
            predicted = np.log(fourier_amplitude(few["Mw"], few["R"], few["f"], **parameters))
            total += np.mean((np.log(few["fas"]) - np.asarray(predicted)) ** 2)
    assert fitted.prediction_error(few, n=20, seed=5) == pytest.approx(total / 20, rel=1e-9)


def test_units_only_scale(fitted, table):
    in_g = GroundMotion(unit="g s").fit(without(table, fas=table["fas"] / 980.665), progress=False)
    assert in_g.fit_.bound == pytest.approx(fitted.fit_.bound, abs=1e-6)
    np.testing.assert_allclose(in_g.predict(table).median * 980.665, fitted.predict(table).median, rtol=1e-6)


def test_tables_of_every_kind_are_read_alike(fitted, table):
    arrays = tuple(table.values())
    renamed = dict(zip(("event_id", "magnitude", "R_hyp_km", "frequency_hz", "amplitude"), arrays, strict=True))
    for other in (arrays, renamed):
        assert GroundMotion().fit(other, progress=False).fit_.bound == fitted.fit_.bound
    pandas = pytest.importorskip("pandas")
    assert GroundMotion().fit(pandas.DataFrame(table), progress=False).fit_.bound == fitted.fit_.bound


def test_the_order_of_the_rows_does_not_matter(fitted, table):
    order = np.random.default_rng(1).permutation(len(table["f"]))
    shuffled = GroundMotion().fit({name: column[order] for name, column in table.items()}, progress=False)
    assert shuffled.fit_.bound == pytest.approx(fitted.fit_.bound, abs=1e-6)


def test_the_priors_are_normalised(table):
    from quenched.science import read_spectra

    data = model.observations(read_spectra(table), ["A", "B", "C"], model.read_bounds(None), GroundMotion().medium)
    widths = np.log([999.0] * 3 + [1.5, 2980.0, 0.099, np.log(1e4)])
    assert data.log_prior == pytest.approx(-widths.sum())
    parameters = {**TRUTH, "stress_drop": np.array(list(STRESS.values())), "noise": NOISE}
    with jax.enable_x64(True):
        residual = np.log(table["fas"]) - np.asarray(model.predicted(parameters, data.points, data.event))
        found = float(model.log_density(parameters, data))
    expected = stats.norm(0.0, NOISE).logpdf(residual).sum() - widths.sum() - np.log(NOISE)
    assert found == pytest.approx(expected, rel=1e-12)


def test_new_data_of_the_same_size_are_not_traced_again(table, monkeypatch):
    GroundMotion().fit(table, progress=False)
    calls = []
    original = model.boore.log_amplitude
    monkeypatch.setattr(model.boore, "log_amplitude", lambda *a: calls.append(1) or original(*a))
    GroundMotion().fit(without(table, fas=1.01 * table["fas"]), progress=False)
    assert not calls


def test_save_and_load(fitted, table, tmp_path):
    path = fitted.save(tmp_path / "model.npz")
    again = GroundMotion.load(path)
    assert str(again) == str(fitted)
    np.testing.assert_array_equal(again.predict(table).median, fitted.predict(table).median)
    assert qd.load(path).bound == fitted.fit_.bound
    fitted.fit_.save(tmp_path / "plain.npz")
    with pytest.raises(ValueError, match="GroundMotion"):
        GroundMotion.load(tmp_path / "plain.npz")


def test_figures_are_drawn(fitted, tmp_path):
    fitted.plot_spectra(tmp_path / "spectra.png", table=simulate(frequencies=5, stations=(30.0,)))
    fitted.plot_corner(tmp_path / "corner.png", names=["kappa0", "A"], n=500)
    assert (tmp_path / "spectra.png").stat().st_size > 5000
    assert (tmp_path / "corner.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="neither a parameter nor an event"):
        fitted.plot_corner(names=["eta"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"R": -5.0}, r"distance = -5.0 in row 0"),
        ({"f": 0.0}, r"frequency = 0.0"),
        ({"fas": np.nan}, r"amplitude = nan"),
        ({"Mw": np.inf}, r"magnitude = inf"),
    ],
)
def test_wrong_numbers_are_named(table, change, message):
    ((name, value),) = change.items()
    column = table[name].copy()
    column[0] = value
    with pytest.raises(ValueError, match=message):
        GroundMotion().fit(without(table, **{name: column}))


@pytest.mark.parametrize(("name", "kind"), [("Mw", complex), ("fas", complex), ("R", "M8[s]")])
def test_what_would_lose_a_part_is_no_column_of_numbers(table, name, kind):
    with pytest.raises(ValueError, match=r"table: the \w+ is not a column of numbers: it has dtype"):
        GroundMotion().fit(without(table, **{name: np.asarray(table[name]).astype(kind)}))


def test_misuse_is_named(table, fitted):
    few = {name: column[:6] for name, column in table.items()}
    with pytest.raises(ValueError, match="5 points cannot determine 7 parameters"):
        GroundMotion().fit({name: column[::60] for name, column in table.items()})
    with pytest.raises(ValueError, match="no column for the frequency"):
        GroundMotion().fit({name: column for name, column in table.items() if name != "f"})
    with pytest.raises(ValueError, match="has magnitudes"):
        GroundMotion().fit(without(table, Mw=table["Mw"] + np.arange(len(table["Mw"])) * 0.01))
    with pytest.raises(ValueError, match="is not a table"):
        GroundMotion().fit(3.0)
    with pytest.raises(ValueError, match="3 arrays were given"):
        GroundMotion().fit(tuple(table.values())[:3])
    with pytest.raises(ValueError, match="rows"):
        GroundMotion().fit(without(table, R=table["R"][:-1]))
    with pytest.raises(ValueError, match="no parameter 'eta'"):
        GroundMotion(bounds={"eta": (0.5, 1.0)}).fit(table)
    with pytest.raises(ValueError, match="0 < lower < upper"):
        GroundMotion(bounds={"kappa0": (0.1, 0.01)}).fit(table)
    with pytest.raises(ValueError, match="unit='gal'"):
        GroundMotion(unit="gal").fit(table)
    with pytest.raises(ValueError, match="nothing was fitted"):
        GroundMotion().sample(3)
    with pytest.raises(ValueError, match="event 'Z' was not fitted"):
        fitted.predict(without(few, event=np.repeat("Z", 6)))
    with pytest.raises(ValueError, match="probability"):
        fitted.predict(few, probability=1.0)
