"""Sets of coordinates that are matched among themselves, which may overlap.

Points can be made exact within every set if the sets can be put in an order in which each shares with all before it
only what one of them holds: disjoint sets, (global, local) pairs, (globals, locals of a group), the levels of a nested
model, the links of a chain. The coordinates that a set shares are then matched already when its turn comes, and the
rest is made orthogonal to them. Sets that overlap in a ring have no such order.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from quenched.text import shown

Groups = tuple[tuple[int, ...], ...]


class Step(NamedTuple):
    """Sets that share the same coordinates, already matched, and have as many others."""

    shared: tuple[int, ...]
    others: np.ndarray  # (set, coordinate)


def read_groups(groups: Any, dim: int) -> Groups:
    """Check sets of coordinates: whole numbers in range, none twice in a set, and every coordinate in some set."""
    try:
        sets = tuple(tuple(group) for group in groups)
    except Exception as error:  # of whatever it is, when it is looked through
        raise ValueError(f"groups={shown(groups)}: give sets of coordinates, such as ((0, 1), (2,)).") from error
    everything = [coordinate for group in sets for coordinate in group]
    others = set(map(type, everything)) - {int}
    for kind in others:
        if not issubclass(kind, np.integer):
            wrong = next(coordinate for coordinate in everything if type(coordinate) is kind)
            raise ValueError(f"groups: {shown(wrong)} is not a coordinate; give whole numbers from 0 to {dim - 1}.")
    if others:
        sets = tuple(tuple(map(int, group)) for group in sets)
    beyond = [c for c in (min(everything, default=0), max(everything, default=0)) if not 0 <= c < dim]
    if beyond:
        raise ValueError(f"groups: there is no coordinate {beyond[0]}; the {dim} are numbered from 0 to {dim - 1}.")
    for group in sets:
        if not group or len(set(group)) < len(group):
            raise ValueError(f"groups: {group} is empty or names a coordinate twice.")
    missing = set(range(dim)).difference(everything)
    if missing:
        raise ValueError(f"groups: no group holds coordinate {min(missing)}; give it one, if only its own.")
    return sets


@lru_cache(maxsize=32)
def steps(groups: Groups) -> list[Step] | None:
    """In which order to match sets, as many at a time as can be; None if no order will do."""
    turn: dict[int, int] = {}  # of a coordinate: when it was matched
    batches: dict[tuple[tuple[int, ...], int], list[tuple[int, ...]]] = {}
    ordered = list(_ordered(groups))
    for now, group in enumerate(ordered):
        shared = tuple(sorted(coordinate for coordinate in group if coordinate in turn))
        # The one set that may hold all that is shared is the one which brought the last of it.
        if shared and not set(shared) <= set(ordered[max(turn[coordinate] for coordinate in shared)]):
            return None
        others = tuple(coordinate for coordinate in group if coordinate not in turn)
        turn.update(dict.fromkeys(others, now))
        if others:
            batches.setdefault((shared, len(others)), []).append(others)
    return [Step(shared, np.array(others)) for (shared, _), others in batches.items()]


def _ordered(groups: Groups) -> Iterator[tuple[int, ...]]:
    """Always next the set that shares most with those before: if any order will do, this one does.

    Tarjan and Yannakakis (1984), maximum cardinality search.
    """
    holders = defaultdict(list)
    for index, group in enumerate(groups):
        for coordinate in group:
            holders[coordinate].append(index)
    share = [0] * len(groups)
    queue = [(0, index) for index in range(len(groups))]
    done: set[int] = set()
    while queue:
        negative, index = heappop(queue)
        if index in done or -negative < share[index]:
            continue  # it has been put in again, further ahead
        done.add(index)
        yield groups[index]
        touched = set()
        for coordinate in groups[index]:
            for other in holders.pop(coordinate, ()):
                share[other] += 1
                touched.add(other)
        for other in touched - done:
            heappush(queue, (-share[other], other))
