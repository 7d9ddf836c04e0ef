"""Models of the sciences, ready to fit. `GroundMotion` is Boore's stochastic model of earthquake ground motion."""

from quenched.science.boore import Medium, corner_frequency, fourier_amplitude
from quenched.science.ground_motion import GroundMotion
from quenched.science.identification import Judgement, identify, identify_fit
from quenched.science.panels import corner_columns, spectrum_panels
from quenched.science.prediction import Prediction
from quenched.science.spectra import Spectra, read_spectra
from quenched.science.spectra_csv import read_spectra_csv

__all__ = [
    "GroundMotion",
    "Judgement",
    "Medium",
    "Prediction",
    "Spectra",
    "corner_columns",
    "corner_frequency",
    "fourier_amplitude",
    "identify",
    "identify_fit",
    "read_spectra",
    "read_spectra_csv",
    "spectrum_panels",
]
