"""How programs are compiled, kept from waiting for themselves, and let go."""

from quenched.compiling.lapack import calls_lapack, compiled, divided, in_small_calls, inner_programs, points_together
from quenched.compiling.programs import (
    FAST,
    QUICK,
    known,
    let_go_of_programs,
    let_go_with_functions,
    program,
    small_program,
)

__all__ = [
    "FAST",
    "QUICK",
    "calls_lapack",
    "compiled",
    "divided",
    "in_small_calls",
    "inner_programs",
    "known",
    "let_go_of_programs",
    "let_go_with_functions",
    "points_together",
    "program",
    "small_program",
]
