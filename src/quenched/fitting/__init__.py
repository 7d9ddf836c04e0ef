"""Fit a posterior: the methods, the start, the monitor and the growth of draws."""

from quenched.fitting.ascent import Ascent
from quenched.fitting.many import fit_many
from quenched.fitting.method import Alternating, Joint, Method
from quenched.fitting.mode import Mode
from quenched.fitting.run import fit

__all__ = ["Alternating", "Ascent", "Joint", "Method", "Mode", "fit", "fit_many"]
