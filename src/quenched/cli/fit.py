"""`quenched fit MODEL.py`: fit a log density that is written in a file."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quenched.cli.distributed import mesh_of_all, supervised
from quenched.cli.leaving import INTERRUPTED, begun, say
from quenched.cli.misuse import Misuse, blame

if TYPE_CHECKING:
    from quenched.cli.model import ModelFile
    from quenched.results import Fit
    from quenched.targets import Model

_DESCRIPTION = """\
Fit the log density that a Python file defines. The file gives

  log_density(parameters[, data])   in JAX, in natural units, up to a constant
  start                             an array or a pytree of arrays: where to begin

and may give `transforms`, `data` and `hyper`; or it gives `model`, a model of NumPyro, PyMC or Bambi. A NumPyro model takes
its arguments from the file by name, or from --data. A Stan program (MODEL.stan) takes its data from --data. The result is saved as OUT/MODEL.npz (read it with quenched.load) and
described in OUT/MODEL.html."""

_EPILOG = """\
exit code: 0 converged, 1 not converged or not finite somewhere (what was reached is saved), 2 misuse, 75 another process was lost, 130 interrupted

example: quenched fit examples/eight_schools.py --family diagonal --out out
         quenched fit model.stan --data data.json"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="fit a log density that is written in a file",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "model",
        metavar="MODEL.py[:name] | MODEL.stan",
        help="the file, and what in it to fit if not log_density, or model of NumPyro or PyMC",
    )
    add(
        "--data",
        type=Path,
        metavar="DATA.json",
        help="data by name, for a Stan program or instead of those in the file",
    )
    add(
        "--family",
        choices=("auto", "full", "diagonal", "blocks", "warped"),
        help="auto, the default: full, or warped where that is nearer to the target; blocks: one per array",
    )
    add("--draws", type=int, metavar="N", help="fix the number of draws; grown until they suffice otherwise")
    add("--max-draws", type=int, metavar="N", help="where growth ends")
    add("--tolerance", type=float, metavar="NATS", help="by which the draws may make the posterior fall short")
    add("--seed", type=int, help="of the draws (0)")
    add("--starts", type=int, default=1, metavar="N", help="starting points to try (%(default)s)")
    add("--method", choices=("joint", "alternating"), default="joint", help="alternating: Algorithm 1 of the paper")
    add("--max-seconds", type=float, metavar="S", help="stop after this time and keep what was reached")
    add("--out", type=Path, default=Path("out"), metavar="DIR", help="folder for result and report (%(default)s)")
    add("--resume", action="store_true", help="begin from the result in the folder")
    add(
        "--no-diagnosis",
        action="store_true",
        help="leave out errors and k-hat, which take a few times the gradients of the fit",
    )
    add(
        "--distributed",
        action="store_true",
        help="one of several processes (srun, mpirun, Kubernetes): draws are shared among their devices, the first writes",
    )
    add("--row-shards", type=int, default=1, metavar="N", help="with --distributed: parts of the data's rows (1)")
    add("--quiet", action="store_true", help="say only the verdict and where the files are")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Fit, print, save, report."""
    from quenched.cli.model import read_model_file
    from quenched.execute import writes

    mesh = None
    if options.distributed:
        code = supervised(options.arguments)
        if code is not None:
            return code
        mesh = mesh_of_all(options.row_shards)
    options.quiet = options.quiet or not writes(mesh)
    if options.model.endswith(".stan") and not options.quiet:
        say(f"Compiling {options.model}; the first time this takes a minute or two")
    file = read_model_file(options.model, options.data)
    result_path = options.out / f"{file.label}.npz"
    _make_folder(options.out)
    model = _continued(file, result_path) if options.resume else file.model
    if not options.quiet:
        say(f"Fitting {model.name} of {file.path}\n")
    begun()
    began = time.time()
    try:
        return _reached(model, file, options, result_path, mesh)
    except KeyboardInterrupt:
        if not _is_written_since(began, result_path):
            raise
        say(f"\nquenched: interrupted; {result_path} holds what was saved last", complaint=True)
        return INTERRUPTED


def _reached(model: "Model", file: "ModelFile", options: argparse.Namespace, result_path: Path, mesh: Any) -> int:
    """What was reached is printed, saved and described, whenever the first Ctrl-C comes."""
    from quenched.execute import writes
    from quenched.interrupts import interrupts_held, interrupts_obeyed, interrupts_unobeyed

    with interrupts_held():  # until what was reached is saved
        fit = _fit(model, file.path, options, result_path, mesh)
        if not fit.history:
            say(f"quenched: {fit.verdict}\nNothing was reached, so nothing was saved.", complaint=True)
            return 1
        interrupted = (
            fit.status == "interrupted" or interrupts_obeyed()
        )  # also where all was reached but a remark, or a second family
        judged = None if interrupted else _judged(fit, file.path, options)
        if writes(mesh):
            with interrupts_unobeyed():
                fit = judged or _as_checked(fit)
                _print(fit, options.quiet)
                _keep(fit, file.label, result_path)
        if interrupted or judged is None or _pressed():
            return INTERRUPTED
    return 0 if fit.converged and fit.finite else 1


def _fit(model: "Model", path: Path, options: argparse.Namespace, checkpoint: Path, mesh: Any) -> "Fit":
    from quenched.fitting import Alternating, Joint, fit

    try:
        return fit(
            model,
            family=_family(options),
            draws=options.draws,
            method=Alternating() if options.method == "alternating" else Joint(),
            seed=options.seed,
            max_draws=options.max_draws,
            tolerance=options.tolerance,
            starts=options.starts,
            max_seconds=options.max_seconds,
            checkpoint=checkpoint,
            mesh=mesh,
            throw=False,
            progress=not options.quiet,
        )
    except Exception as error:
        where = blame(error, path)
        if where is None and not isinstance(error, (ValueError, OSError, MemoryError, ImportError)):
            raise  # a fault of ours: the traceback is what helps
        raise Misuse(where or str(error)) from error


def _family(options: argparse.Namespace) -> Any:
    from quenched.families import Blocks

    if options.family == "blocks":
        return Blocks()
    return options.family or (None if options.resume or options.method == "alternating" else "auto")


def _judged(fit: "Fit", path: Path, options: argparse.Namespace) -> "Fit | None":
    """The fit, once its target has been asked all that is told of it; None if someone did not want to wait for that.

    What goes wrong is told: the fit is there.
    """
    try:
        if fit.converged and not options.no_diagnosis:
            fit.diagnose(progress=not options.quiet)
        _ = fit.verdict, fit.diagnosis and fit.diagnosis.verdict
    except KeyboardInterrupt:
        return None
    except Exception as error:
        why = blame(error, path) or f"{type(error).__name__}: {error}"
        say(f"quenched: the fit could not be diagnosed: {why}", complaint=True)
        return _as_checked(fit)
    return fit


def _as_checked(fit: "Fit") -> "Fit":
    """The fit with what its own check has seen of its target, which is not asked any more."""
    from dataclasses import replace

    return replace(fit, outlook=None)


def _is_written_since(began: float, path: Path) -> bool:
    """Whether a round of this fit is there: files may know whole seconds only."""
    return path.exists() and path.stat().st_mtime >= began - 1.0


def _pressed() -> bool:
    """Whether Ctrl-C has been held back, so far."""
    from quenched.interrupts import obey_interrupts

    try:
        obey_interrupts()
    except KeyboardInterrupt:
        return True
    return False


def _continued(file: "ModelFile", path: Path) -> "Model":
    """The model, beginning at the earlier result, in the space of the model as it is now."""
    from dataclasses import replace

    from quenched.results import load
    from quenched.transforms import describe_space

    if not path.exists():
        raise Misuse(f"--resume: {path} does not exist; run without --resume first.")
    try:
        saved = load(path)
        space, _ = describe_space(file.model.start, file.model.transforms)
    except ValueError as error:
        raise Misuse(str(error)) from error
    describe = lambda leaves: [(leaf.name, leaf.shape, leaf.transform) for leaf in leaves]
    if describe(saved.space.leaves) != describe(space.leaves):
        raise Misuse(
            f"--resume: {path} holds other parameters than {file.path} now defines "
            f"({_shapes(saved.space.leaves)} against {_shapes(space.leaves)}); run without --resume."
        )
    return replace(file.model, start=replace(saved, space=space), transforms=None, hyper=None)


def _shapes(leaves: Any) -> str:
    return ", ".join(f"{leaf.name} {leaf.shape} {leaf.transform.describe()}" for leaf in leaves)


def _print(fit: "Fit", quiet: bool) -> None:
    from rich.console import Console

    from quenched.cli.advice import as_commands
    from quenched.results import print_summary

    if quiet:
        say(as_commands(fit.verdict))
    else:
        print_summary(fit, Console(), fit.diagnosis, says=as_commands)


def _keep(fit: "Fit", label: str, path: Path) -> None:
    """Save and describe what was reached."""
    from quenched.report import write_report

    try:
        fit.save(path)
        report = write_report(fit, path.with_name(f"{label}.html"), title=label)
    except OSError as error:
        raise Misuse(f"--out {path.parent}: {error}") from error
    say(f"\nresult  {path}\nreport  {report}")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"--out {folder}: cannot make this folder ({error.strerror}).") from error
