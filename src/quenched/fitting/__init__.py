"""Fit a posterior: the methods, the start, the monitor and the growth of draws."""

from quenched.fitting.ascent import Ascent, ascend
from quenched.fitting.attachment import attach
from quenched.fitting.many import fit_many
from quenched.fitting.method import Alternating, Joint, Method
from quenched.fitting.mode import Mode, Search
from quenched.fitting.progress import Watcher
from quenched.fitting.run import fit
from quenched.fitting.threads import quiet_blas

__all__ = [
    "Alternating",
    "Ascent",
    "Joint",
    "Method",
    "Mode",
    "Search",
    "Watcher",
    "ascend",
    "attach",
    "fit",
    "fit_many",
    "quiet_blas",
]
