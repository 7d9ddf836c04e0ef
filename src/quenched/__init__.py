"""Bayesian inference with frozen draws."""

__version__ = "0.1.0"
