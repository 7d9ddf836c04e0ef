"""Many independent fits of one log density: the stages of one fit, taken by all of them together."""

from quenched.fitting.many.run import fit_many

__all__ = ["fit_many"]
