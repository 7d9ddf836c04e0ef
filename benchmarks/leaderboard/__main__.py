"""`python -m benchmarks.leaderboard`: runs what is missing of the short leaderboard, or of the whole one, and writes the page."""

import argparse
import os
import subprocess
import sys

from benchmarks.leaderboard import limits, page, protocol
from benchmarks.leaderboard.problems import MAKERS
from benchmarks.leaderboard.protocol import ABLATED, FEW_METHODS, FEW_PROBLEMS, LEADERBOARD, RESULTS, planned, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all problems, all methods, ten seeds; takes a night")
    parser.add_argument("--seeds", type=int, help="of every fit (1, or 10 with --full)")
    parser.add_argument("--limit", type=float, help="seconds that one process may take (60, or 600 with --full)")
    parser.add_argument("--budget", type=float, help="seconds after which no further fit is begun")
    parser.add_argument("--problems", nargs="*", choices=MAKERS, help="some of them")
    parser.add_argument("--methods", nargs="*", choices=LEADERBOARD, help="some of them")
    parser.add_argument("--page", action="store_true", help="only write the page from the results that are there")
    parser.add_argument("--limits", action="store_true", help="measure the distance to the limit anew")
    asked = parser.parse_args()
    if "QUENCHED_DATA" not in os.environ:
        raise SystemExit("set QUENCHED_DATA to the folder of the datasets (it holds posteriordb, banana, groundmotion)")
    path = RESULTS / "leaderboard.csv"
    if not asked.page:
        if asked.full:
            double = {**os.environ, "JAX_ENABLE_X64": "1"}
            subprocess.run([sys.executable, "-m", "benchmarks.leaderboard.references"], env=double, check=True)
        fits = planned(
            tuple(asked.problems or (MAKERS if asked.full else FEW_PROBLEMS)),
            tuple(asked.methods or (LEADERBOARD if asked.full else FEW_METHODS)),
            ABLATED if asked.full else ABLATED[:1],
            asked.seeds or (10 if asked.full else 1),
        )
        run(list(fits), path, asked.limit or (600.0 if asked.full else 60.0), asked.budget)
        if asked.limits or not limits.FILE.exists():
            limits.main(asked.full)
    page.write(protocol.read(path), limits.rows())


if __name__ == "__main__":
    main()
