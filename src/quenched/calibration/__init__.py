"""Simulation-based calibration: are the posteriors of a model what they claim to be?"""

from quenched.calibration.calibrate import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
