"""Advice as something to type: what a verdict says in Python, in the words of the command line."""

import re

_SPOKEN = (
    (r'family="(\w+)"', r"--family \1"),
    (r"(family=qd\.\w+\([^)]*\))", r"\1 in Python"),
    (r"\b([Rr])esume with start=fit\b", r"\1esume with --resume"),
    (r"\b(draws|starts)=(\d+)", r"--\1 \2"),
    (r"qd\.fit\(log_density, fit(?:, data=data)?\)", "--resume"),
    (r"fit\.(resample\(n\)|nuts_start\(\))", r"quenched.load(FILE).attach(log_density, data).\1 in Python"),
    (r"(qd\.nested\([^)]*\))", r"\1 in Python"),
    (r"diagnosis\.linear_response\.sd", "linear response (in the report)"),
)


def as_commands(verdict: str) -> str:
    """The same sentences, with the options of `quenched fit` where there are any."""
    for python, command in _SPOKEN:
        verdict = re.sub(python, command, verdict)
    return verdict
