"""How far to trust a fit: errors of the optimisation, of the draws and of the family."""

from quenched.diagnostics.diagnosis import Diagnosis, diagnose
from quenched.diagnostics.importance import Importance, weigh
from quenched.diagnostics.linear_response import LinearResponse, Response
from quenched.diagnostics.resampling import resample
from quenched.diagnostics.structure import check_structure

__all__ = ["Diagnosis", "Importance", "LinearResponse", "Response", "check_structure", "diagnose", "resample", "weigh"]
