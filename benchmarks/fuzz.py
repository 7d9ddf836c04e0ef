"""Every file that the library reads, made of bytes that a fuzzer chooses: each ends in what was saved or in our words.

    python benchmarks/fuzz.py --minutes 5

Saved fits are altered twice over: as bytes, which the checksums of the archive mostly notice, and as text and arrays that are put
into a sound archive again. What loads is then used: shown, sampled, resumed from. With atheris (`pip install atheris`) the bytes follow the
lines that they reach; without it they are mutated at random. Prints counts and what was found, and ends with 1 if anything was.
"""

import argparse
import contextlib
import copy
import io
import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import jax.numpy as jnp
import numpy as np

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["quenched"]) if atheris else contextlib.nullcontext():
    import quenched as qd
    from quenched.cli.misuse import Misuse
    from quenched.cli.model import _read_json
    from quenched.paper.experiments.tasks import Task, _read
    from quenched.science import read_spectra, read_spectra_csv

FOLDER = Path(tempfile.mkdtemp(prefix="quenched-fuzz-"))
HOSTILE = [
    None,
    True,
    -1,
    0,
    1,
    2**63,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "text",
    "\x1b[2J",
    [],
    {},
    [[]],
    [None],
    {"a": 1},
]


class Chances:
    """Choices that bytes make."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def below(self, n: int) -> int:
        value = int.from_bytes(self.data[self.at : self.at + 2], "little")
        self.at += 2
        return value % max(n, 1)

    def rest(self) -> bytes:
        return self.data[self.at :]

    def left(self) -> bool:
        return self.at < len(self.data)


def saved() -> list[bytes]:
    """Fits of several kinds, as they are saved."""
    skewed = lambda w: jnp.sum(w["a"] - jnp.exp(w["a"])) - 0.5 * (w["b"] - w["a"][0]) ** 2
    start, quiet = {"a": np.zeros(2), "b": 1.0}, {"progress": False, "draws": 16, "check": 128}
    fits = [
        qd.fit(skewed, start, **quiet),
        qd.fit(skewed, start, transforms={"b": qd.positive}, family="warped", progress=False, check=128),
        qd.fit_many(lambda w, y: -0.5 * jnp.sum((w - y) ** 2), np.zeros(2), np.ones((3, 2)), **quiet),
    ]
    return [fit.save(FOLDER / "seed.npz").read_bytes() for fit in fits]


def use(fit) -> None:
    """What a person does with a fit that was loaded."""
    if isinstance(fit, qd.Fits):
        str(fit), fit.mean, fit.status, [str(one) for one in list(fit)[:2]]
        return
    str(fit), fit.verdict, fit.mean, fit.sd, fit.khat, fit.history.bound
    fit.sample(3)
    fit.save(FOLDER / "again.npz")


def load(content: bytes) -> None:
    path = FOLDER / "fit.npz"
    path.write_bytes(content)
    use(qd.load(path))


def altered_fit(content: bytes, seeds: list[bytes]) -> None:
    """A sound archive whose text and arrays are altered."""
    chances = Chances(content)
    with np.load(io.BytesIO(seeds[chances.below(len(seeds))])) as archive:
        arrays = {name: archive[name] for name in archive.files}
    text = json.loads(str(arrays.pop("fit.json")))
    for _ in range(1 + chances.below(3)):
        (alter_text if chances.below(2) else alter_array)(text, arrays, chances)
    arrays["fit.json"] = np.array(json.dumps(text))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    load(buffer.getvalue())


def alter_text(text, arrays, chances: Chances) -> None:
    """Replace, remove or add something at some depth."""
    while True:
        keys = list(text) if isinstance(text, dict) else list(range(len(text)))
        if not keys:
            return
        key = keys[chances.below(len(keys))]
        if isinstance(text[key], (dict, list)) and text[key] and chances.below(4):
            text = text[key]
            continue
        kind = chances.below(6)
        if kind == 0 and isinstance(text, dict):
            del text[key]
        elif kind == 1 and isinstance(text, dict):
            text[chances.rest()[:8].decode("latin-1")] = copy.deepcopy(text[key])
        elif kind == 2 and isinstance(text, list):
            text.append(copy.deepcopy(text[key]))
        else:
            text[key] = copy.deepcopy(HOSTILE[chances.below(len(HOSTILE))])
        return


def alter_array(text, arrays, chances: Chances) -> None:
    names = list(arrays)
    name = names[chances.below(len(names))]
    array, kind = arrays[name], chances.below(7)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = array.astype([np.float32, np.int64, complex, "U8", ">f8", bool][chances.below(6)])
    elif kind == 2:
        arrays[name] = array[None]
    elif kind == 3 and array.ndim:
        arrays[name] = array[: chances.below(len(array) + 1)]
    elif kind == 4 and array.size:
        flat = array.reshape(-1).copy()
        if flat.dtype.kind in "fiu":
            flat[chances.below(flat.size)] = [0, -1, 2**31, 7][chances.below(4)]
        if flat.dtype.kind == "f":
            flat[chances.below(flat.size)] = [np.nan, np.inf, -1e308, 0.0][chances.below(4)]
        arrays[name] = flat.reshape(array.shape)
    elif kind == 5:
        arrays[chances.rest()[:6].decode("latin-1").replace("/", "_") or "x"] = array
    else:
        arrays[name] = np.zeros(chances.below(5))


def spectra(content: bytes) -> None:
    path = FOLDER / "spectra.csv"
    path.write_bytes(content)
    read_spectra(read_spectra_csv(path))


def data(content: bytes) -> None:
    path = FOLDER / "data.json"
    path.write_bytes(content)
    _read_json(path)


def result(content: bytes) -> None:
    """A damaged result of an experiment counts as none."""
    task = Task("fuzz", "one", "nowhere:nothing", {})
    path = FOLDER / "fuzz" / "one.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    _read(task, FOLDER)


class Found:
    """What has ended badly, one of each kind."""

    def __init__(self, out: Path):
        self.out, self.counts, self.bad = out, Counter(), {}

    def attempt(self, name: str, read, content: bytes) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(content)
            self.counts[f"{name}: read"] += 1
        except (ValueError, Misuse, FileNotFoundError) as error:
            own = isinstance(error, Misuse) or "quenched" in (traceback.extract_tb(error.__traceback__)[-1].filename)
            self.counts[f"{name}: refused"] += 1
            if not own:
                self._note(name, error, content)
        except Exception as error:
            self._note(name, error, content)

    def _note(self, name: str, error: Exception, content: bytes) -> None:
        last = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in last if "quenched" in frame.filename]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
        key = (name, type(error).__name__, where)
        if key not in self.bad:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / f"{name}-{len(self.bad)}.bin").write_bytes(content)
            self.bad[key] = str(error)[:200]
            print("FOUND", key, self.bad[key], flush=True)

    def report(self) -> int:
        for name, count in sorted(self.counts.items()):
            print(f"{count:8d}  {name}")
        for key, words in self.bad.items():
            print("BAD", *key, words)
        print(f"{sum(self.counts.values())} files, {len(self.bad)} kinds of bad endings")
        return 1 if self.bad else 0


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Bytes changed, cut, doubled or put in."""
    letters = bytearray(content)
    for _ in range(1 + chance.randrange(8)):
        at = chance.randrange(len(letters) + 1)
        kind = chance.randrange(4)
        if kind == 0 and at < len(letters):
            letters[at] = chance.randrange(256)
        elif kind == 1:
            del letters[at : at + chance.randrange(1, 32)]
        elif kind == 2:
            letters[at:at] = letters[at : at + chance.randrange(1, 32)]
        else:
            letters[at:at] = chance.choice(
                [b"\0", b'"', b"[", b"{", b",", b"1e999", b"NaN", b"\xff", b"-1", b"#", b"\n"]
            )
    return bytes(letters)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="folder for what is found")
    asked = parser.parse_args()
    fits = saved()
    table = b"event,Mw,R_hyp_km,frequency_hz,fas,usable\n" + b"a,5.0,20.0,1.0,1.5,1\n" * 3
    readers = {
        "saved fit": (load, fits),
        "altered fit": (lambda content: altered_fit(content, fits), [bytes(range(i, i + 24)) for i in range(40)]),
        "spectra": (spectra, [table]),
        "data of a model": (data, [b'{"x": [1.0, 2.0], "n": 3, "m": [[1, 2], [3, 4]]}']),
        "result": (result, [b'{"fingerprint": "abc", "result": [1.0, {"a": 2}]}']),
    }
    names, found = list(readers), Found(asked.out)

    ends = time.monotonic() + 60.0 * asked.minutes

    def one(content: bytes) -> None:
        if time.monotonic() > ends:
            code = found.report()
            sys.stdout.flush()
            os._exit(code)  # the fuzzer does not return
        if content:
            name = names[content[0] % len(names)]
            found.attempt(name, readers[name][0], content[1:])

    seeds = [bytes([place]) + seed for place, name in enumerate(names) for seed in readers[name][1]]
    if atheris is None:
        chance = random.Random(asked.seed)
        while True:
            one(mutated(chance.choice(seeds), chance))
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for place, seed in enumerate(seeds):
        (corpus / str(place)).write_bytes(seed)
    options = [
        f"-seed={asked.seed + 1}",
        "-timeout=300",
        "-report_slow_units=300",
        "-rss_limit_mb=8000",
        "-max_len=20000",
    ]
    atheris.Setup([sys.argv[0], str(corpus), *options, f"-artifact_prefix={FOLDER}/", "-verbosity=0"], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
