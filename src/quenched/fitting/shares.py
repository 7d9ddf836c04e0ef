"""Many fits in shares: on an executor, saved as they come, found again by the next call.

A share is always the same problems, whoever fits it and whatever happens to others: so a run in which workers died equals
one in which none did, to the last bit.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np

from quenched.execute import Pool
from quenched.files import read_folder_to_write
from quenched.fitting.options import read_submit
from quenched.fitting.run import Run
from quenched.results import Fits, Origins, as_a_warning, draws_of, insist_writable, load, same_parameters, save

_FEWEST, _MOST = 16, 256  # problems in a share: some seconds of work, and few files
_FEWEST_IN_LANES = 64  # where they go side by side, of which fewer would be fitted one by one
_SHARES = 64  # of not so many problems


@dataclass(frozen=True)
class Share:
    """Fits some of the problems; can be sent to another process."""

    fit_many: Callable[..., Fits]
    log_density: Any
    start: Any
    options: dict[str, Any]

    def __call__(self, own: tuple[Any, Any, float | None], data: None = None) -> Fits:
        """Of the problems with these rows of data and starts, before a point in time."""
        rows, start, ends = own
        left = None if ends is None else max(ends - time.time(), 1e-3)
        start = self.start if start is None else start
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # who asked for all is told of all
            fits = self.fit_many(
                self.log_density, start, rows, **self.options, max_seconds=left, throw=False, progress=False
            )
        return replace(fits, origin=None)

    def where(self, place: int, n: int, own: Any) -> str:
        """Which share it was, in words."""
        return f"in share {place} of {n}, of {len(jax.tree.leaves(own[0])[0])} problems"


def share_out(
    share: Share, rows: Any, run: Run, executor: Any, checkpoint: str | Path | None, mesh: Any = None
) -> Fits:
    """All fits of a run, share by share: on an executor, on the devices of a mesh, or here."""
    from quenched.execute import exchanged, on_devices, writes

    n, watch = run.batch.n, run.watch
    cuts = _cuts(n, _FEWEST_IN_LANES if run.in_lanes else _FEWEST)
    ends = None if watch.max_seconds is None else time.time() + watch.max_seconds - watch.seconds
    parts = [_part(share, rows, first, stop, ends) for first, stop in cuts]
    found = _Found(checkpoint, run, share, parts, cuts)
    if mesh is not None:  # what the first process has is known to all, and it alone saves
        found.fits, found.paths = exchanged(found.fits if writes(mesh) else {}), found.paths if writes(mesh) else []
    left = [place for place in range(len(parts)) if place not in found.fits]

    def arrived(place: int, fits: Fits) -> None:
        found.keep(left[place], fits)
        watch.say(f"{sum(map(len, found.fits.values()))} of {n} fits")

    calls = None
    if mesh is not None:
        on_devices(share, [parts[place] for place in left], mesh, arrived)
    elif executor is None:
        for place in range(len(left)):
            arrived(place, share(parts[left[place]]))
    else:
        calls = Pool(read_submit(executor), together=1, arrived=arrived)
        calls(share, [parts[place] for place in left], None)
    fits = Fits.joined([found.fits[place] for place in range(len(parts))])
    problem = run.batch.problem
    settings = fits.settings | ({} if mesh is None else {"mesh": dict(mesh.shape), "processes": jax.process_count()})
    settings |= {"workers": calls.workers, "lost": calls.lost} if calls is not None else {}
    origin = Origins(run.batch, problem.read_hyper(fits.hyper, n), run.settings.draws)
    return replace(fits, seconds=watch.seconds, settings=settings, origin=origin, space=problem.space)


def _cuts(n: int, fewest: int) -> list[tuple[int, int]]:
    """The first problem of each share, and the one after its last; the same whoever fits them."""
    number = max(-(-n // _MOST), min(_SHARES, n // fewest), 1)
    ends = [n * place // number for place in range(number + 1)]
    return list(pairwise(ends))


def _part(share: Share, rows: Any, first: int, stop: int, ends: float | None) -> tuple[Any, Any, float | None]:
    some = lambda tree: jax.tree.map(lambda leaf: np.asarray(leaf)[first:stop], tree)
    return some(rows), some(share.start) if share.options["own_starts"] else None, ends


class _Found:
    """Shares that have been fitted, and the files they are in."""

    def __init__(self, checkpoint: Any, run: Run, share: Share, parts: list, cuts: list[tuple[int, int]]):
        self.fits: dict[int, Fits] = {}
        self.paths: list[Path] = []
        if checkpoint is None:
            return
        insist_writable(run.batch.problem.space)
        folder = read_folder_to_write("checkpoint", checkpoint)
        settings = run.settings
        asked = settings.describe() | {"most": settings.max_draws, "check": settings.n_check}
        asked = json.dumps(asked | {"family": repr(settings.family), "method": repr(settings.method)})
        for (first, stop), part in zip(cuts, parts, strict=True):
            digest = hashlib.blake2b(asked.encode(), digest_size=8)
            for leaf in jax.tree.leaves((part[:2], share.start, run.batch.problem.hyper)):
                digest.update(np.ascontiguousarray(leaf).tobytes())
            self.paths.append(folder / f"fits-{first:08d}-{stop:08d}-{digest.hexdigest()}.npz")
        for place, path in enumerate(self.paths):
            if path.exists():
                with suppress(ValueError, OSError):  # what is damaged, or of another log density, is fitted again
                    self.fits[place] = _insist_its_own(load(path), run, cuts[place][0])

    def keep(self, place: int, fits: Fits) -> None:
        """Save what has come; shares whose time was up are fitted again another time."""
        self.fits[place] = fits
        if self.paths and not np.isin(fits.status, ("max_seconds", "interrupted")).any():
            with as_a_warning(self.paths[place]):
                save(fits, self.paths[place])


def _insist_its_own(fits: Fits, run: Run, first: int) -> Fits:
    """The fits of a file; an error, if one of them is not of the problem of this run that stands there.

    A log density has no name that outlives its process, but the bound of a fit, on the draws that it stands on, is known.
    """
    problem = run.batch.problem
    if not same_parameters(fits.space, problem.space):
        raise ValueError("fitted in other coordinates")
    if jax.tree.structure(fits.hyper) != jax.tree.structure(problem.describe_hyper(problem.hyper)):
        raise ValueError("fitted with other hyperparameters")
    known = np.flatnonzero(np.isfinite(fits.bound))
    if not len(known):
        raise ValueError("none of them tells of its log density")
    index = int(known[0])
    hyper = jax.tree.map(lambda leaf: leaf[index], problem.read_hyper(fits.hyper, len(fits)))
    draws_of(fits[index], run.batch.one(first + index), hyper)
    return fits
