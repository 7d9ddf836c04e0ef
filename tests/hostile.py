"""Every public entry point, found from its signature, and values that nobody should give: each ends in an answer or in our words.

An entry is called with good values for all of its arguments but one. What it must have is named in `GOOD`, by argument; an
entry that asks for something else fails `entries`, so that a new one cannot be forgotten.
"""

import contextlib
import datetime
import decimal
import fractions
import importlib
import inspect
import tempfile
import traceback
import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import quenched as qd
from quenched.diagnostics import LinearResponse
from quenched.export import NutsStart
from quenched.frozen import Frozen
from quenched.posterior import Posterior

ROOMS = ("models", "baselines", "science", "plots", "export", "diagnostics", "report")
# Results: a user reads them, calls their methods, and does not build them.
MADE_BY_US = {
    *("Calibration", "Diagnosis", "Fit", "FitError", "Fits", "Importance", "Judgement", "LinearResponse", "NutsStart"),
    *("Panel", "Prediction", "Response", "Spectra", "Status"),
}
# What our own pages and figures are put together from.
PARTS = {
    *("Document", "Markup", "calibration_html", "corner_columns", "diagnosis_html", "dress", "facts", "figure"),
    *(
        "fit_html",
        "fits_html",
        "new_figure",
        "picture",
        "plot_spectra",
        "spectrum_panels",
        "table",
        "verdict_box",
        "weigh",
    ),
}
FRONT_ENDS = {
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "from_torch",
    "MixedModel",
}  # in tests/external: they need packages
_OURS = str(Path(qd.__file__).parent)


# What is fitted. At the top level, so that their compiled programs are found again.


def normal(w, data=None, hyper=None):
    return -0.5 * sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(w))


def mixed(w, data=None):
    return -0.5 * (w["a"] ** 2 + jnp.sum(jnp.square(w["b"] - jnp.sin(w["a"]))))


def around_data(w, data):
    return -0.5 * jnp.sum(jnp.square(w - data)) - 0.5 * jnp.sum(jnp.square(w))


def simulate(random):
    value = random.standard_normal(2)
    return value, value + random.standard_normal(2)


def line(w, x):
    return x @ w


def on_host(w):
    return -0.5 * float(np.sum(np.square(w))), -np.asarray(w)


def of_row(seen, row):
    return -0.5 * (row - seen["w"]) ** 2


def of_entry(seen):
    return -0.5 * seen["w"] ** 2


@cache
def fitted() -> qd.Fit:
    return qd.fit(normal, {"w": np.zeros(2)}, draws=8, check=128, progress=False)


@cache
def many() -> qd.Fits:
    return qd.fit_many(around_data, np.zeros(2), np.ones((3, 2)), draws=8, check=128, progress=False)


@cache
def calibrated() -> qd.Calibration:
    return qd.calibrate(simulate, around_data, np.zeros(2), n=20, n_samples=19, draws=8, check=128, progress=False)


@cache
def terms():
    return qd.sum_of(
        qd.each(of_row, data=np.array([1.0, 2.0, 0.5]), sees={"w": np.array([0, 1, 0])}),
        qd.each(of_entry, sees={"w": qd.each_entry}),
    )


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="quenched-hostile-"))


@cache
def saved() -> Path:
    return fitted().save(folder() / "good.npz")


X = np.linspace(-1.0, 1.0, 24).reshape(12, 2) ** 3
TABLE = {
    "event": ["a"] * 6 + ["b"] * 6,
    "Mw": [5.0] * 6 + [5.5] * 6,
    "R": [20.0] * 12,
    "f": [0.5, 1.0, 2.0, 4.0, 8.0, 16.0] * 2,
    "fas": [1.0, 1.5, 1.8, 1.7, 1.2, 0.5, 2.0, 2.5, 3.0, 2.6, 2.0, 1.0],
}


@cache
def ground_motion():
    from quenched.science import GroundMotion

    return GroundMotion().fit(TABLE, progress=False, draws=32, check=128)


@cache
def _diagnosed():
    return fitted().diagnose(replicates=2, samples=100, progress=False)


# What a user is given, whose methods are tried.
RESULTS: dict[type, Callable[[], Any]] = {
    qd.Fit: fitted,
    Posterior: lambda: fitted().posterior,
    qd.Fits: many,
    qd.Calibration: calibrated,
    LinearResponse: lambda: _diagnosed().linear_response,
    NutsStart: lambda: fitted().nuts_start(),
    qd.Draws: lambda: qd.iid(4, 2),
}


# Good values, by "entry.argument" or else by argument; made anew for every call.
GOOD: dict[str, Callable[[], Any]] = {
    "log_density": lambda: normal,
    "start": lambda: np.zeros(2),
    "progress": lambda: False,
    "function": lambda: on_host,
    "n": lambda: 32,
    "dim": lambda: 2,
    "seed": lambda: 1,
    "path": lambda: folder() / "out.npz",
    "X": lambda: X.copy(),
    "y": lambda: X @ np.array([1.0, -1.0]),
    "table": lambda: TABLE,
    "lower": lambda: 0.0,
    "upper": lambda: 1.0,
    "kind": lambda: "iid",
    "points": lambda: np.ones((4, 2)),
    "folder": lambda: folder() / "programs",
    "posterior": lambda: (np.zeros(2), np.eye(2)),
    "simulate": lambda: simulate,
    "f": lambda: line,
    "log_likelihood": lambda: normal,
    "design": lambda: np.ones((3, 2)),
    "sees": lambda: {"w": np.array([0, 1, 0])},
    "target": terms,
    "residual": lambda: np.ones(3),
    "samples": lambda: {"a": np.random.default_rng(0).standard_normal(100)},
    "magnitude": lambda: 5.0,
    "distance": lambda: 10.0,
    "frequency": lambda: np.array([1.0, 2.0]),
    "stress_drop": lambda: 100.0,
    "spreading": lambda: 1.0,
    "quality": lambda: 200.0,
    "kappa0": lambda: 0.03,
    "vectors": lambda: np.zeros((3, 2)),
    "w": lambda: np.zeros(2),
    "names": lambda: [0],
    "linear": lambda: np.ones(2),
    "draws": lambda: np.zeros((3, 2)),
    "ranks": lambda: np.arange(20),
    "parts": lambda: [many()],
    "key": lambda: 0,
    "what": lambda: "w",
    "replicates": lambda: 2,
    "labels": lambda: np.arange(12) % 3,
    "kernel": lambda: X @ X.T + np.eye(12),
    "fit": fitted,
    "calibration": calibrated,
    "NutsStart.covariance_of.names": lambda: ["w"],
    "NutsStart.to_natural.vectors": lambda: np.zeros((3, 2)),
    "science.identify_fit.fit": lambda: ground_motion().fit_,
    "plots.plot_fit.path": lambda: folder() / "out.png",
    "plots.plot_ranks.path": lambda: folder() / "ranks.png",
    "report.write_report.path": lambda: folder() / "report.html",
    "vector": lambda: np.zeros(2),
    "nested.log_density": lambda: mixed,
    "nested.start": lambda: {"a": 0.0, "b": np.zeros(2)},
    "nested.outer": lambda: ["a"],
    "baselines.nested_laplace.log_density": lambda: mixed,
    "baselines.nested_laplace.start": lambda: {"a": 0.0, "b": np.zeros(2)},
    "baselines.nested_laplace.outer": lambda: ["a"],
    "baselines.expectation_propagation.start": lambda: {"w": np.zeros(2)},
    "calibrate.log_density": lambda: around_data,
    "calibrate.n": lambda: 20,
    "calibrate.n_samples": lambda: 19,
    "fit_many.log_density": lambda: around_data,
    "fit_many.data": lambda: np.ones((3, 2)),
    "each.function": lambda: of_row,
    "each.data": lambda: np.array([1.0, 2.0, 0.5]),
    "load.path": saved,
    "Model.target": lambda: normal,
    "Fit.of.function": lambda: lambda parameters: jnp.sum(parameters["w"]),
    "Fit.of.n": lambda: 100,
    "Fit.plot.path": lambda: folder() / "out.png",
    "Calibration.plot.path": lambda: folder() / "ranks.png",
    "GroundMotion.plot_spectra.path": lambda: folder() / "spectra.png",
    "GroundMotion.plot_corner.path": lambda: folder() / "corner.png",
    "GroundMotion.plot_corner.n": lambda: 500,
    "GroundMotion.load.path": lambda: ground_motion().save(folder() / "ground.npz"),
    "plots.plot_corner.path": lambda: folder() / "corner.png",
    "plots.plot_corner.names": lambda: ["a"],
    "plots.plot_corner.truths": lambda: {"a": 0.0},
    "plots.plot_forest.names": lambda: ["w"],
    "plots.plot_pair.x": lambda: "w[0]",
    "plots.plot_pair.y": lambda: "w[1]",
    "plots.plot_effects.table": lambda: {"mean": np.ones(2), "sd": np.ones(2), "level": ["a", "b"]},
    "estimates": lambda: np.zeros(3),
    "errors": lambda: np.ones(3),
    "truths": lambda: np.ones(3),
    "predicted": lambda: np.arange(6.0).reshape(2, 3),
    "science.read_spectra_csv.path": lambda: _csv(),
    "science.identify.samples": lambda: np.linspace(0.1, 0.9, 100),
    "LogisticRegression.fit.y": lambda: np.arange(12) % 2,
    "RelevanceVectorClassifier.fit.y": lambda: np.arange(12) % 2,
    "PoissonRegression.fit.y": lambda: np.arange(12),
    "LogisticRegression.score.y": lambda: np.arange(12) % 2,
    "RelevanceVectorClassifier.score.y": lambda: np.arange(12) % 2,
    "PoissonRegression.score.y": lambda: np.arange(12),
    "PPCA.inverse_transform.X": lambda: X[:, :1].copy(),
    "CauchyPPCA.inverse_transform.X": lambda: X[:, :1].copy(),
    "Draws.grow.n": lambda: 64,
}
# Options that make a call short, where nothing is given.
QUICK: dict[str, Callable[[], Any]] = {"draws": lambda: 8, "check": lambda: 128, "samples": lambda: 100}
_CALLING = ("_explaining", "_first")  # functions of ours that call the user's
_ALWAYS = ("progress", "start")
_SLOW = ("fit", "fit_many", "laplace", "assess", "calibrate", "nested", "nested_laplace", "expectation_propagation")


def _csv() -> Path:
    path = folder() / "spectra.csv"
    rows = zip(*TABLE.values(), strict=True)
    names = "event_id,Mw,R_hyp_km,frequency_hz,fas_cm_s"
    path.write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return path


class Entry(NamedTuple):
    """Something that a user can call."""

    name: str
    call: Callable[..., Any]
    arguments: tuple[str, ...]
    good: dict[str, Callable[[], Any]]

    def attempt(self, argument: str | None = None, value: Any = None) -> Any:
        """Call it, with this value for one of its arguments."""
        given = {name: make() for name, make in self.good.items() if name != argument}
        if argument is not None:
            given[argument] = value
        many_values = given.pop("*terms", None)
        with contextlib.chdir(folder()):  # a text may be taken for a path
            return self.call(*(many_values if isinstance(many_values, (list, tuple)) else ()), **given)


def entries() -> list[Entry]:
    """All of them."""
    found: dict[str, Callable[..., Any]] = {}
    for name in qd.__all__:
        thing = getattr(qd, name)
        if callable(thing) and name not in MADE_BY_US | FRONT_ENDS:
            found[name] = thing
    for cls, owner in RESULTS.items():
        for name in methods(cls):
            found[f"{cls.__name__}.{name}"] = _method(cls, name, owner)
    found["keep_programs"] = _keep_programs
    found["Fits[]"] = lambda key: many()[key]
    found["Fit.diagnose"] = _diagnose
    for room in ROOMS:
        module = importlib.import_module(f"quenched.{room}")
        for name in module.__all__:
            if name in MADE_BY_US | PARTS | FRONT_ENDS:
                continue
            thing = getattr(module, name)
            if inspect.isclass(thing) and hasattr(thing, "fit"):
                found.update(_estimator(name, thing))
            elif callable(thing) and thing not in found.values():
                found[f"{room}.{name}"] = thing
    return [_entry(name, call) for name, call in found.items()]


def methods(cls: type) -> Iterator[str]:
    """Those of ours that take something; families, transforms and ways to fit are told what to do by our engine alone."""
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        ours = str(getattr(getattr(value, "__func__", value), "__module__", None)).startswith("quenched")
        if name.startswith("_") or not ours or not callable(getattr(cls, name)) or issubclass(cls, Frozen):
            continue
        bound = isinstance(value, (staticmethod, classmethod))
        if len(inspect.signature(getattr(cls, name)).parameters) > (0 if bound else 1):
            yield name


def places() -> list[Any]:
    """The root and the rooms that users import from."""
    return [qd, *(importlib.import_module(f"quenched.{room}") for room in ROOMS)]


def untried() -> set[str]:
    """Public names, and methods of public classes, that are neither entries nor named above as no entries."""
    names = {entry.name for entry in entries()}
    tried = names | {name.rpartition(".")[2] for name in names} | MADE_BY_US | PARTS | FRONT_ENDS
    missing = set()
    for where in places():
        for name in where.__all__:
            thing = getattr(where, name)
            if callable(thing) and name not in tried:
                missing.add(name)
            if name not in PARTS | FRONT_ENDS and not isinstance(thing, (str, float)):
                cls = thing if inspect.isclass(thing) else type(thing)
                missing |= {f"{cls.__name__}.{method}" for method in methods(cls)} - names
    return missing


def _keep_programs(folder):
    try:
        qd.keep_programs(folder)
    finally:
        qd.keep_programs(None)


def _diagnose(replicates=2, samples=100, progress=False):
    from quenched.diagnostics import diagnose

    return diagnose(fitted(), replicates=replicates, samples=samples, progress=progress)


_TRAINED: dict[str, Any] = {}


def _estimator(name: str, cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Constructor and `fit` in one, since scikit-learn wants a constructor that checks nothing; and its own methods."""
    own = [key for key in inspect.signature(cls).parameters]
    if name == "GroundMotion":
        trained = ground_motion
        yield (
            name,
            _with_signature(cls, lambda **options: cls(**options).fit(TABLE, progress=False, draws=32, check=128)),
        )
        yield (
            f"{name}.fit",
            _with_signature(cls().fit, lambda table: cls().fit(table, progress=False, draws=32, check=128), ["table"]),
        )
    else:
        extra = {"n_components": 1} if "n_components" in own else {}
        short = {"max_iter": 5} if "max_iter" in own else {}
        labels = GOOD.get(f"{name}.fit.y", GOOD["y"])

        def trained():
            if name not in _TRAINED:
                _TRAINED[name] = cls(**extra, **short).fit(X, labels())
            return _TRAINED[name]

        make = lambda **options: cls(**{**extra, **short, **options}).fit(X, labels())
        yield name, _with_signature(cls, make)
        yield (
            f"{name}.fit",
            _with_signature(cls.fit, lambda **given: cls(**extra, **short).fit(**given), skip_self=True),
        )
    for method in methods(cls):
        if method == "fit" or method.startswith(("get_", "set_")):
            continue
        yield f"{name}.{method}", _method(cls, method, trained)


def _method(cls: type, name: str, owner: Callable[[], Any]) -> Callable[..., Any]:
    bound = isinstance(inspect.getattr_static(cls, name), (staticmethod, classmethod))
    call = lambda *positional, **given: getattr(owner(), name)(*positional, **given)
    return _with_signature(getattr(cls, name), call, skip_self=not bound)


def _with_signature(of: Any, call: Callable, only: list[str] | None = None, skip_self: bool = False) -> Callable:
    def calling(*positional, **given):
        return call(*positional, **given)

    parameters = list(inspect.signature(of).parameters.values())
    parameters = parameters[1:] if skip_self else parameters
    calling.__signature__ = inspect.Signature([p for p in parameters if only is None or p.name in only])
    return calling


def _entry(name: str, call: Callable[..., Any]) -> Entry:
    arguments, good = [], {}
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            arguments.append("*terms")
            good["*terms"] = lambda: [qd.each(of_entry, sees={"w": qd.each_entry})]
            continue
        arguments.append(parameter.name)
        make = GOOD.get(f"{name}.{parameter.name}")
        if make is None and (parameter.default is parameter.empty or parameter.name in _ALWAYS):
            make = GOOD.get(parameter.name)
            if make is None:
                raise LookupError(f"{name} asks for {parameter.name}: give it a good value in hostile.GOOD.")
        if make is None and name.rpartition(".")[2] in _SLOW and parameter.name in QUICK:
            make = QUICK[parameter.name]
        if make is not None:
            good[parameter.name] = make
    if name in _SLOW:
        good |= {"max_seconds": lambda: 3.0} if "max_seconds" in arguments else {}
    if name == "calibrate":
        good |= {"draws": QUICK["draws"], "check": QUICK["check"], "progress": lambda: False}
    return Entry(name, call, tuple(arguments), good)


# What nobody should give.

Pair = namedtuple("Pair", "a b")


class Unprintable:
    """Fails when it is shown."""

    def __repr__(self):
        raise RuntimeError("no repr")


class Unreadable:
    """Fails when it is made an array."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("no array")


class Unequal:
    """Fails when it is compared."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no comparison")


class Endless:
    """Has a length that it does not keep."""

    def __len__(self):
        return 3

    def __getitem__(self, key):
        raise KeyError(key)


def _frame():
    import pandas

    return pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "b": ["x", "y"]})


def _series():
    import pandas

    return pandas.Series([1.0, None, 3.0])


def _dates():
    import pandas

    return pandas.Series(pandas.to_datetime(["2026-01-01", None]))


def _read_only():
    array = np.ones(2)
    array.setflags(write=False)
    return array


def _itself():
    value: list = []
    value.append(value)
    return value


def _itself_by_name():
    value: dict = {"a": 1.0, "b": 2.0}
    value["itself"] = value
    return value


def _raises(*arguments, **options):
    raise ZeroDivisionError("of the user")


VALUES: dict[str, Callable[[], Any]] = {
    **{repr(value): (lambda value=value: value) for value in (None, True, False, 0, 1, -1, 3, 0.5, -0.0, 1e308, 1j)},
    **{
        repr(value): (lambda value=value: value)
        for value in ("", "text", "0", "a\x1b[31mb\n", "\x00", b"bytes", "é" * 300)
    },
    "2**70": lambda: 2**70,
    "-2**70": lambda: -(2**70),
    "10**400": lambda: 10**400,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: -float("inf"),
    "float16": lambda: np.float16(3),
    "longdouble": lambda: np.longdouble(3),
    "int8": lambda: np.int8(3),
    "uint64": lambda: np.uint64(2**63),
    "numpy bool": lambda: np.True_,
    "jax scalar": lambda: jnp.float32(1.0),
    "decimal": lambda: decimal.Decimal("1.5"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "date": lambda: datetime.date(2026, 1, 1),
    "datetime64": lambda: np.datetime64("2026-01-01"),
    "zero-dimensional": lambda: np.array(3.0),
    "empty array": lambda: np.zeros(0),
    "no rows": lambda: np.zeros((0, 2)),
    "no columns": lambda: np.zeros((2, 0)),
    "array of nan": lambda: np.array([np.nan, 1.0]),
    "array of inf": lambda: np.array([np.inf, 1.0]),
    "array": lambda: np.array([1.0, 2.0]),
    "matrix": lambda: np.ones((2, 2)),
    "cube": lambda: np.ones((2, 2, 2)),
    "integers": lambda: np.array([1, 2]),
    "booleans": lambda: np.array([True, False]),
    "texts": lambda: np.array(["a", "b"]),
    "objects": lambda: np.array([1.0, "a", None], dtype=object),
    "complex array": lambda: np.array([1.0 + 2j, 0.0]),
    "big-endian": lambda: np.array([1.0, 2.0], ">f8"),
    "long doubles": lambda: np.array([1.0, 2.0], np.longdouble),
    "half precision": lambda: np.array([1.0, 2.0], np.float16),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "structured": lambda: np.zeros(2, dtype=[("a", float), ("b", int)]),
    "not contiguous": lambda: np.ones((4, 4))[::2, ::2],
    "read-only": _read_only,
    "negative strides": lambda: np.arange(2.0)[::-1],
    "dates": lambda: np.array(["2026-01-01", "NaT"], "datetime64[D]"),
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "list": lambda: [1, 2.0],
    "empty list": lambda: [],
    "tuple": lambda: (1.0, 2.0),
    "pair": lambda: Pair(1.0, np.ones(2)),
    "itself": _itself,
    "itself by name": _itself_by_name,
    "set": lambda: {1, 2},
    "empty dict": lambda: {},
    "dict": lambda: {"a": 1.0, "b": np.ones(2)},
    "mixed keys": lambda: {1: 1.0, "a": 2.0},
    "tuple keys": lambda: {("a", 1): 1.0},
    "odd names": lambda: {"\x1b[2J": 1.0, "$x^$": 2.0, "": 3.0},
    "same names": lambda: {"a": {"b": 1.0}, "a.b": 2.0},
    "ordered dict": lambda: OrderedDict(b=1.0, a=2.0),
    "none inside": lambda: {"a": None, "b": 1.0},
    "text inside": lambda: {"a": "x"},
    "generator": lambda: (i for i in range(2)),
    "range": lambda: range(2),
    "function": lambda: lambda *arguments, **options: None,
    "function that raises": lambda: _raises,
    "class": lambda: dict,
    "object": object,
    "unprintable": Unprintable,
    "unreadable": Unreadable,
    "unequal": Unequal,
    "endless": Endless,
    "path": lambda: folder() / "missing" / "file.npz",
    "folder": folder,
    "frame": _frame,
    "series": _series,
    "series of dates": _dates,
    "jax array": lambda: jnp.ones(2),
    "a fit": fitted,
    "draws": lambda: qd.iid(8, 2),
    "transform": lambda: qd.positive,
    "a family": lambda: qd.Warped(),
    "many fits": many,
}


# What may come of it.


class Outcome(NamedTuple):
    """How a call has ended."""

    kind: str  # answer, ours, theirs, foreign
    error: BaseException | None = None

    @property
    def bad(self) -> bool:
        return self.kind == "foreign"

    def __str__(self) -> str:
        if self.error is None:
            return self.kind
        frames = [f for f in traceback.extract_tb(self.error.__traceback__) if _OURS in f.filename]
        where = f" at {Path(frames[-1].filename).relative_to(_OURS)}:{frames[-1].lineno}" if frames else ""
        try:
            words = str(self.error)[:160]
        except Exception:
            words = "?"
        return f"{self.kind}: {type(self.error).__name__}: {words}{where}"


def outcome(entry: Entry, argument: str, value: Any) -> Outcome:
    """Try it, and judge how it ended."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = entry.attempt(argument, value)
            if inspect.isgenerator(answer):
                list(answer)
        return Outcome("answer")
    except Exception as error:
        return Outcome(_kind(entry, argument, error), error)


def _kind(entry: Entry, argument: str, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1].filename
    words = str(error)
    if isinstance(error, qd.FitError):
        return "ours"
    if isinstance(error, ImportError):
        return "ours" if "quenched[" in words else "foreign"
    if isinstance(error, ZeroDivisionError) and words == "of the user":
        return "theirs"
    own = [frame.name for frame in frames if _OURS in frame.filename]
    if own and own[-1] in _CALLING:
        return "theirs"
    if isinstance(error, OSError):
        return "ours" if argument in ("path", "folder", "checkpoint") else "foreign"
    if isinstance(error, IndexError) and entry.name == "Fits[]":
        return "ours"
    if not isinstance(error, (ValueError, TypeError)):
        return "foreign"
    name = argument.lstrip("*")
    named = any(
        part in words
        for part in {
            name,
            name.rstrip("s"),
            "fun" if name == "function" else name,
            "log_density" if name == "target" else name,
        }
    )
    if _OURS in last:
        return "ours" if named or _about_the_call(entry, words) else "foreign"
    if "sklearn" in last and entry.name.partition(".")[0] in _estimators():
        return "ours"  # in the words that scikit-learn's own checks ask for
    return "foreign"


def _about_the_call(entry: Entry, words: str) -> bool:
    """The entry is named, or another argument, with which this one does not go together."""
    return entry.name.rpartition(".")[2] in words or any(
        words.startswith(other) or f" {other}" in words for other in entry.arguments
    )


@cache
def _estimators() -> frozenset[str]:
    module = importlib.import_module("quenched.models")
    return frozenset(module.__all__)
