"""What the paper leaves open: improved Gaussian approximations, compared with each other and with the truth.

Laplace, nested Laplace (Rue, Martino and Chopin 2009), expectation propagation (Minka 2001), frozen draws with a full and a
warped Gaussian, and nested frozen draws. The truth is a grid for two parameters, and elsewhere long Hamiltonian chains in the
coordinates of the nested posterior.
"""

from collections.abc import Sequence
from typing import Any

from quenched.paper.experiments.experiment import Experiment, results
from quenched.paper.experiments.improved_methods import METHODS, compared
from quenched.paper.experiments.improved_problems import PROBLEMS
from quenched.paper.experiments.improved_report import sections
from quenched.paper.experiments.records import Record, summarise
from quenched.paper.experiments.tasks import Outcome, Task

_QUICK = ("skew-top", "skew-middle", "skew-bottom", "gaussian-process", "heart", "seeds", "salamander-1", "sleepstudy")
_COSTS = {"verbagg": 60.0, "epil": 15.0, "skew-top": 1.0, "skew-middle": 1.0, "skew-bottom": 1.0}
_METRICS = (
    *("mean_error", "worst_mean_error", "sd_error", "worst_sd_error", "marginal_distance", "worst_marginal_distance"),
    *("outer_mean_error", "outer_sd_ratio", "outer_distance", "inner_sd_ratio", "evidence_error", "khat"),
    *("evaluations", "seconds"),
)


def run(dataset: str, chains: int, draws: int) -> dict[str, Any]:
    """All methods on one data set."""
    return compared(PROBLEMS[dataset](), chains, draws)


def _tasks(full: bool) -> list[Task]:
    chosen = list(PROBLEMS) if full else list(_QUICK)
    arguments = {"chains": 16, "draws": 1000}
    return [
        Task("improved", name, f"{__name__}:run", {"dataset": name, **arguments}, cost=_COSTS.get(name, 6.0))
        for name in chosen
    ]


def _records(outcomes: Sequence[Outcome]) -> list[Record]:
    rows = []
    for dataset in PROBLEMS:
        for found in results(outcomes, dataset=dataset):
            for key, (label, _) in METHODS.items():
                measured = found["methods"].get(key, {})
                rows += [
                    summarise("improved", dataset, "default", label, metric.replace("_", " "), [measured[metric]])
                    for metric in _METRICS
                    if measured.get(metric) is not None
                ]
            truth = found["truth"]
            rows += [
                Record("improved", dataset, "default", "truth", name, truth[name])
                for name in ("evidence", "rhat", "effective", "seconds")
            ]
    return rows


improved = Experiment("improved", "Improved Gaussian approximations", _tasks, _records, sections)
