"""How many parameters there may be inside: each outer draw has the factor of a precision matrix of them."""

from quenched.nesting.algebra import Dense
from quenched.nesting.bordered import Bordered

MOST_ENTRIES = 500_000  # of a factor: 1,000 parameters that all go with each other
MOST_INSIDE = 2_000  # of which the covariance of all is kept


class TooManyInside(ValueError):
    """A nested fit would hold too much for every draw."""


def insist_few_inside(algebra: Dense | Bordered) -> None:
    """Of effects of one grouping, each goes with few others, and thousands are possible; of crossed ones, fewer are."""
    layout = algebra.layout
    if layout.dim <= MOST_INSIDE and layout.n_entries <= MOST_ENTRIES:
        return
    raise TooManyInside(
        f"start: {layout.dim} parameters are left inside, and nested holds {layout.n_entries} numbers of their matrix for every "
        f"draw; up to {MOST_INSIDE} and {MOST_ENTRIES} are possible. Use quenched.fit(sum_of(...), start) with hyper=..., or fewer "
        "parameters."
    )
