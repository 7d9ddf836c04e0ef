"""Fits in the formats of other libraries."""

from quenched.export.arviz import to_arviz

__all__ = ["to_arviz"]
