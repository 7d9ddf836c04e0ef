"""Fit a posterior: one engine for one fit or many."""

from quenched.fitting.ascent import Ascent, Limits, ascend
from quenched.fitting.asked import Asked, ready, told
from quenched.fitting.fit import assess, fit, fit_from, fit_many
from quenched.fitting.method import Alternating, Joint, Method
from quenched.fitting.newton import Expander, Mode, Search
from quenched.fitting.options import with_hints
from quenched.fitting.progress import Watcher
from quenched.fitting.streaming import Streaming
from quenched.fitting.variational_newton import NewtonAscent, nats_left, point_of, stand_at

__all__ = [
    "Alternating",
    "Ascent",
    "Asked",
    "Expander",
    "Joint",
    "Limits",
    "Method",
    "Mode",
    "NewtonAscent",
    "Search",
    "Streaming",
    "Watcher",
    "ascend",
    "assess",
    "fit",
    "fit_from",
    "fit_many",
    "nats_left",
    "point_of",
    "ready",
    "stand_at",
    "told",
    "with_hints",
]
