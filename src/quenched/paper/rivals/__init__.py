"""The methods that the paper compares with and that no estimator of the library needs, and the truth they are measured by."""

from quenched.paper.rivals.hamiltonian import Chains, bridge, convergence, hamiltonian
from quenched.paper.rivals.jaakkola_jordan import jaakkola_jordan

__all__ = ["Chains", "bridge", "convergence", "hamiltonian", "jaakkola_jordan"]
