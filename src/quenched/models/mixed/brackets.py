"""Which varying effects go together: those in the same brackets of a formula, as in lme4; none of those in (x||group)."""

from dataclasses import dataclass
from typing import Any

_QUOTES = "'\"`"


@dataclass(frozen=True)
class Brackets:
    """The text of one pair, such as "x|group", and whether its terms are without correlations."""

    text: str
    apart: bool


def read_brackets(formula: str) -> tuple[str, tuple[Brackets, ...]]:
    """The formula with every double bar single, as formulae reads it, and the brackets with a bar in them.

    Raises
    ------
    ValueError
        When a bar is outside of brackets, or brackets have several.
    """
    open_ones: list[list[int]] = []  # of each: where it opens, and its bars
    found, doubled, quote = [], [], ""
    for place, sign in enumerate(formula):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in _QUOTES:
            quote = sign
        elif sign == "(":
            open_ones.append([place])
        elif sign == "|" and not open_ones:
            raise ValueError(f"formula={formula!r}: put brackets around what varies, as in 'y ~ x + (1|group)'.")
        elif sign == "|":
            open_ones[-1].append(place)
        elif sign == ")" and open_ones:
            begin, *bars = open_ones.pop()
            if not bars or formula[:begin].rstrip()[-1:].isalnum():  # of a function
                continue
            inside, apart = formula[begin + 1 : place], len(bars) == 2 and bars[1] == bars[0] + 1
            if len(bars) > 1 + apart:
                raise ValueError(
                    f"formula={formula!r}: ({inside}) has more than one bar; write (x|group), or (x||group)."
                )
            doubled += bars[1:]
            found.append(Brackets(inside.replace("||", "|") if apart else inside, apart))
    return "".join(sign for place, sign in enumerate(formula) if place not in doubled), tuple(found)


def together(brackets: tuple[Brackets, ...]) -> dict[str, Any]:
    """For each term, as "x|group": what it shares with those that it correlates with. A term given twice is of the first."""
    from formulae import model_description  # pyright: ignore[reportMissingImports]

    found: dict[str, Any] = {}
    for number, pair in enumerate(brackets):
        for place, term in enumerate(model_description(f"0 + ({pair.text})").group_terms):
            found.setdefault(term.name, (number, place if pair.apart else 0))
    return found
