"""The paper's experiments, rerun, with our numbers beside the paper's."""

from quenched.paper.experiments.reproduction import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "reproduce"]
