"""Fit a posterior: the methods, the start, the monitor and the growth of draws."""

from quenched.fitting.method import Alternating, Joint, Method
from quenched.fitting.mode import Search, find_mode
from quenched.fitting.monitor import check, check_draws
from quenched.fitting.run import fit

__all__ = ["Alternating", "Joint", "Method", "Search", "check", "check_draws", "find_mode", "fit"]
