"""What the default mode gains over the paper's: ratios of work and differences of quality, per dataset."""

from collections.abc import Sequence
from typing import Any

from quenched.paper.experiments.records import Record
from quenched.report import table

_RATIOS = {"evaluations": "evaluations, ratio", "seconds": "time, ratio"}
_DIFFERENCES = {"true_bound": "true bound, nats", "accuracy": "accuracy"}


def gains(records: Sequence[Record], methods: tuple[str, str]) -> Any:
    """A table of paper mode over default mode (work) and default minus paper mode (quality).

    `methods` are the names of the method in the two modes. Repetitions may differ between them.
    """
    rows = []
    for dataset in dict.fromkeys(record.dataset for record in records):
        value = {(r.mode, r.metric): r.value for r in records if r.dataset == dataset and r.method in methods}
        cells: list[Any] = [dataset]
        for metric in _RATIOS:
            old, new = value.get(("paper", metric)), value.get(("default", metric))
            cells.append(None if old is None or not new else f"{old / new:.1f}×")
        for metric in _DIFFERENCES:
            old, new = value.get(("paper", metric)), value.get(("default", metric))
            cells.append(None if old is None or new is None else f"{new - old:+.3f}")
        rows.append(cells)
    return table(["dataset", *_RATIOS.values(), *_DIFFERENCES.values()], rows)
