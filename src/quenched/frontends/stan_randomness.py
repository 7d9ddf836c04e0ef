"""Which generated quantities of a Stan program depend on random numbers, read off its text."""

import re
from collections.abc import Iterable

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_BOUNDS = re.compile(r"<\s*(?:lower|upper|offset|multiplier)\s*=[^;{}]*?>(?=\s*[\[\w])")
_ASSIGNMENT = re.compile(r"(?<![=<>!])=(?!=)")
_BRANCH = re.compile(r"\b(?:if|while|for)\b")
_WORD = re.compile(r"[A-Za-z]\w*")


def random_quantities(code: str, names: Iterable[str]) -> frozenset[str]:
    """Those of the generated quantities that are drawn at random, or computed of what is.

    Only functions whose names end in `_rng` draw, which Stan sees to. Where a branch depends on a random number, all are
    taken for random.

    Parameters
    ----------
    code
        The program.
    names
        Of its generated quantities, without indices.
    """
    names, code = frozenset(names), _COMMENTS.sub("", code)
    block = re.search(r"\bgenerated\s+quantities\s*\{(.*)", code, re.DOTALL)
    if block is None:
        return frozenset()
    statements = re.split(r"[;{}]", _BOUNDS.sub("", block.group(1)))
    found: frozenset[str] = frozenset()
    while True:
        grown = found
        for statement in statements:
            if "_rng(" not in re.sub(r"\s+\(", "(", statement) and found.isdisjoint(_WORD.findall(statement)):
                continue
            left, *right = _ASSIGNMENT.split(statement, maxsplit=1)
            if not right and _BRANCH.search(left):
                return names
            if right:
                grown |= {_assigned(left)}
        if grown == found:
            return found & names
        found = grown


def _assigned(left: str) -> str:
    """The variable on the left of an assignment: the last word that is not an index."""
    while "[" in left and left != (inner := re.sub(r"\[[^\[\]]*\]", "", left)):
        left = inner
    return _WORD.findall(left)[-1]
