"""Save and load one fit or many: one `.npz` file of plain arrays and one JSON text, no pickle, readable without this library."""

import json
import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np

from quenched.families import Member, read_member, write_member
from quenched.files import read_path, read_path_to_write, write_whole
from quenched.posterior import Posterior
from quenched.projected import Collapsed
from quenched.results.fit import Fit
from quenched.results.fits import COUNTED, Fits, Seen
from quenched.results.outcome import History, Optimum, Round, Status
from quenched.results.soundness import insist_leaves, insist_moments, insist_sound
from quenched.results.summary import quantiles_of
from quenched.text import harmless, shown
from quenched.transforms import Leaf, Space, read_transform, write_transform
from quenched.trees import read_tree, write_tree
from quenched.trust import Departure, Further, Moved

_FORMAT = 6
_READABLE = (5, _FORMAT)  # 5 had no named tuples, and no keys but texts
_MOST_ENTRIES = 10_000
_ROWS, _NUMBERS = (*COUNTED, "rounds"), (*COUNTED, "seconds")


def save(fit: Fit | Fits, path: str | Path) -> Path:
    """Write a fit, or many. The file appears whole or not at all."""
    path = read_path_to_write("path", path)
    arrays: dict[str, np.ndarray] = {}
    text = {
        "format": _FORMAT,
        "structure": write_tree(jax.tree.unflatten(fit.space.structure, range(len(fit.space.leaves)))),
        "leaves": [_write_leaf(leaf) for leaf in fit.space.leaves],
        "hyper": _write_arrays(fit.hyper, "hyper", arrays),
        "settings": fit.settings,
        "natural": _write_natural(fit, arrays),
        **(_write_many(fit, arrays) if isinstance(fit, Fits) else _write_one(fit, arrays)),
    }
    arrays["fit.json"] = np.array(json.dumps(text))
    return write_whole(path, lambda file: np.savez(file, **arrays))  # pyright: ignore


@contextmanager
def as_a_warning(path: Path) -> Iterator[None]:
    """A scope in which what has been reached so far is saved. What goes wrong is told: a fit counts for more than its file."""
    try:
        yield
    except (OSError, ValueError, TypeError) as error:
        reason = harmless(f"{getattr(error, 'strerror', None) or error}")
        warnings.warn(
            f"checkpoint={shown(str(path))}: could not be written ({reason}); the fit goes on without it.", stacklevel=4
        )


def insist_writable(space: Space) -> None:
    """Refuse parameters that could not be read again from a file."""
    write_tree(jax.tree.unflatten(space.structure, range(len(space.leaves))))


def _write_natural(fit: Fit | Fits, arrays: dict[str, np.ndarray]) -> Any:
    """What only the model could work out again, of parameters whose map we do not know: all that is shown of them."""
    if fit.space.joint is None:
        return None
    known: dict[str, Any] = {"moments": _write_arrays([fit.mean, fit.sd], "moments", arrays)}
    if isinstance(fit, Fit):
        known["quantiles"] = _write_arrays(quantiles_of(fit), "quantiles", arrays)
        known["departures"] = [list(one) for one in fit.departures]
    return known


def _read_natural(fit: Fit | Fits, text: Any, arrays: dict[str, np.ndarray]) -> None:
    if text is None:
        return
    kept = fit.__dict__  # what would be worked out when it is asked for
    kept["_natural_moments"] = tuple(_read_arrays(text["moments"], arrays))
    insist_moments(kept["_natural_moments"], fit.space, len(fit) if isinstance(fit, Fits) else None)
    if isinstance(fit, Fit):
        fit._kept["quantiles"] = _read_arrays(text["quantiles"], arrays)
        kept["departures"] = [Departure(*one) for one in text["departures"]]


def _write_one(fit: Fit, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    fit = fit.settled
    arrays["log_ratios"] = fit.log_ratios
    if fit.collapsed is not None:
        ratios, *moves, n_outer = fit.collapsed
        arrays |= {
            "collapsed.log_ratios": ratios,
            "collapsed.moves": np.stack(moves),
            "collapsed.outer": np.array(n_outer),
        }
    return {
        "posterior": _write_member(fit.posterior.member, arrays),
        "numbers": {name: getattr(fit, name) for name in _NUMBERS},
        "status": str(fit.status),
        "message": fit.message,
        "history": [list(entry) for entry in fit.history],
        "optima": _write_optima(fit.optima),
        "remarks": list(fit.remarks),
        "further": _write_further(fit.further),
    }


def _write_many(fits: Fits, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    fits = fits.settled
    arrays.update({f"fits.{name}": getattr(fits, name) for name in _ROWS})
    if fits.log_ratios is not None:
        arrays["log_ratios"] = np.concatenate([np.zeros(0), *fits.log_ratios])
        arrays["log_ratios.lengths"] = np.array([len(ratios) for ratios in fits.log_ratios], int)
    return {
        "many": True,
        "posterior": _write_member(fits.member, arrays),
        "seconds": fits.seconds,
        "status": [str(status) for status in fits.status],
        "message": list(fits.message),
        "optima": {str(index): _write_optima(optima) for index, optima in fits.optima.items()},
        "seen": {str(index): [_write_further(one.further), list(one.remarks)] for index, one in fits.seen.items()},
    }


def _write_optima(optima: tuple[Optimum, ...]) -> list:
    return [[optimum.bound, optimum.mean.tolist(), optimum.n_starts] for optimum in optima]


def _read_optima(text: list) -> tuple[Optimum, ...]:
    return tuple(Optimum(bound, np.array(mean), n) for bound, mean, n in text)


def load(path: str | Path) -> Any:
    """Read what was saved: a `Fit`, or `Fits`.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is not a saved fit, or was cut short.

    Examples
    --------
    >>> import tempfile
    >>> fit = qd.fit(lambda w: -0.5 * w**2, 0.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = fit.save(f"{folder}/fit.npz")
    ...     again = qd.load(f"{folder}/fit.npz")
    >>> again.bound == fit.bound
    True
    """
    path = read_path("path", path)
    if not _exists(path):
        raise FileNotFoundError(f"path={str(path)!r}: there is no such file; save a fit there first with fit.save.")
    if not path.is_file():
        raise ValueError(f"path={str(path)!r}: is not a saved fit, or is damaged (it is a folder, a pipe or a device).")
    try:
        _insist_plain(path)
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        text = json.loads(str(arrays.pop("fit.json")))
        found = text["format"]
        fit = _read_fit(text, arrays) if found in _READABLE and not isinstance(found, bool) else None
    except Exception as error:
        reason = harmless(f"{type(error).__name__}: {error}")
        raise ValueError(f"path={str(path)!r}: is not a saved fit, or is damaged ({reason}).") from error
    if fit is None:
        raise ValueError(f"path={str(path)!r}: has format {shown(found)}; this version reads format {_FORMAT}.")
    return fit


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for any file
        return False


def _insist_plain(path: Path) -> None:
    """Before anything is allocated: entries of an archive that say how long they are, none of them compressed."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        _insist_entries(entries, path.stat().st_size)
        for entry in entries:
            with archive.open(entry) as file:
                held = _bytes_described(file)
                if held != entry.file_size - file.tell():
                    raise ValueError(f"{entry.filename} is not as long as it says")


def _bytes_described(file: IO[bytes]) -> int:
    """By the header of an array, which is read."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return math.prod(shape) * dtype.itemsize


def _insist_entries(entries: list[zipfile.ZipInfo], size: int) -> None:
    if len(entries) > _MOST_ENTRIES:
        raise ValueError(f"it has {len(entries)} entries")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("an entry is there twice")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("its entries are compressed, which those of a saved fit never are")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its entries are longer than the file")


def _read_fit(text: dict[str, Any], arrays: dict[str, np.ndarray]) -> Fit | Fits:
    insist_sound(text, arrays)
    insist_leaves(text["leaves"])
    structure = jax.tree.structure(read_tree(text["structure"]))
    if structure.num_leaves != len(text["leaves"]):
        raise ValueError(f"the tree has {structure.num_leaves} leaves, and {len(text['leaves'])} are described")
    space = Space(structure, tuple(_read_leaf(leaf) for leaf in text["leaves"]))
    fit = _read_many(text, arrays, space) if text.get("many") else _read_one(text, arrays, space)
    dim = (fit.member if isinstance(fit, Fits) else fit.posterior).dim
    if dim != space.dim:
        raise ValueError(f"the posterior has {dim} coordinates, the parameters have {space.dim}")
    if isinstance(fit, Fit) and fit.collapsed is not None and fit.collapsed.shift.shape != (dim,):
        raise ValueError(f"its outer log ratios move {fit.collapsed.shift.shape} coordinates of {dim}")
    _read_natural(fit, text["natural"], arrays)
    return fit


def _read_many(text: dict[str, Any], arrays: dict[str, np.ndarray], space: Space) -> Fits:
    return Fits(
        member=_read_member(text["posterior"], arrays),
        space=space,
        hyper=_read_arrays(text["hyper"], arrays),
        seconds=text["seconds"],
        status=np.array([Status(status) for status in text["status"]], object),
        message=tuple(map(harmless, text["message"])),
        settings=text["settings"],
        optima={int(index): _read_optima(optima) for index, optima in text["optima"].items()},
        log_ratios=_read_ratios(arrays),
        seen={int(index): _read_seen(*one) for index, one in text.get("seen", {}).items()},
        **{name: arrays[f"fits.{name}"] for name in _ROWS},  # pyright: ignore
    )


def _read_one(text: dict[str, Any], arrays: dict[str, np.ndarray], space: Space) -> Fit:
    return Fit(
        posterior=Posterior(_read_member(text["posterior"], arrays), space),
        space=space,
        hyper=_read_arrays(text["hyper"], arrays),
        status=Status(text["status"]),
        message=harmless(text["message"]),
        history=History(Round(*entry) for entry in text["history"]),
        optima=_read_optima(text["optima"]),
        settings=text["settings"],
        log_ratios=arrays["log_ratios"],
        remarks=tuple(map(harmless, text["remarks"])),
        collapsed=_read_collapsed(arrays),
        outlook=_read_further(text.get("further")),
        **text["numbers"],
    )


def _read_collapsed(arrays: dict[str, np.ndarray]) -> Collapsed | None:
    if "collapsed.log_ratios" not in arrays:
        return None
    shift, ratio, shift_error, ratio_error = arrays["collapsed.moves"]
    n_outer = int(arrays["collapsed.outer"])
    return Collapsed(arrays["collapsed.log_ratios"], shift, ratio, shift_error, ratio_error, n_outer)


def _write_further(further: Further | None) -> Any:
    if further is None:
        return None
    return {
        "numbers": [further.khat, *further.moved],
        "known": further.known,
        "departures": [list(one) for one in further.departures],
        "elsewhere": further.elsewhere,
    }


def _read_further(text: Any) -> Further | None:
    if text is None:
        return None
    khat, *moved = text["numbers"]
    clear = [Departure(harmless(name), *rest) for name, *rest in text["departures"]]
    return Further(khat, bool(text["known"]), Moved(*moved), clear, harmless(text.get("elsewhere", "")))


def _read_seen(further: Any, remarks: list[str]) -> Seen:
    return Seen(_read_further(further), tuple(map(harmless, remarks)))


def _read_ratios(arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    if "log_ratios" not in arrays:
        return None
    lengths = arrays["log_ratios.lengths"]
    ratios = np.empty(len(lengths), object)
    ratios[:] = np.split(arrays["log_ratios"], np.cumsum(lengths)[:-1]) if len(lengths) else []
    return ratios


def _write_member(member: Member, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    text, found = write_member(member)
    arrays.update({f"posterior.{index}": array for index, array in enumerate(found)})
    return text


def _read_member(text: dict[str, Any], arrays: dict[str, np.ndarray]) -> Member:
    count = sum(name.startswith("posterior.") for name in arrays)
    return read_member(text, [arrays[f"posterior.{index}"] for index in range(count)])


def _write_leaf(leaf: Leaf) -> dict[str, Any]:
    return {"name": leaf.name, "shape": list(leaf.shape), "transform": write_transform(leaf.transform)}


def _read_leaf(text: dict[str, Any]) -> Leaf:
    return Leaf(harmless(text["name"]), tuple(text["shape"]), read_transform(text["transform"]))


def _write_arrays(tree: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    for index, leaf in enumerate(leaves):
        arrays[f"{name}.{index}"] = np.asarray(leaf)
    return write_tree(jax.tree.unflatten(structure, [f"{name}.{i}" for i in range(len(leaves))]))


def _read_arrays(text: Any, arrays: dict[str, np.ndarray]) -> Any:
    def value(name):
        array = arrays[name]
        return float(array) if array.ndim == 0 else array

    return jax.tree.map(value, read_tree(text))
