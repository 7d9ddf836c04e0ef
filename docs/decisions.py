"""The picture on the page "How to choose": questions, and what to write. Drawn as SVG, so that nothing is fetched to show it."""

from html import escape
from typing import NamedTuple

TOP, LEFT, HEIGHT = 16, 20, 60


class Layout(NamedTuple):
    """Where answers stand: beside their questions, or below them on a phone."""

    name: str
    width: int
    row: int
    question_width: int
    answer: tuple[int, int]  # from the corner of the question
    answer_width: int


LAYOUTS = (Layout("wide", 900, 92, 330, (450, 0), 410), Layout("narrow", 440, 166, 330, (30, 74), 380))


class Step(NamedTuple):
    """A question; what to write if the answer is yes, and why. If it is no, the next question is asked."""

    question: tuple[str, str]
    write: str
    why: str


STEPS = (
    Step(("Is the model written elsewhere?", "NumPyro, PyMC, Bambi, Stan, PyTorch"), "qd.fit(qd.from_numpyro(model, ...))", "and its kin; it brings start, names and predictions"),
    Step(("Is it a regression of a table?", "a formula, or X and y"), "MixedModel(formula), LogisticRegression(), ...", "quenched.models, in scikit-learn's manner"),
    Step(("Is it a program JAX cannot read?", "NumPy, Fortran, a simulator"), "qd.from_value_and_grad(f), qd.from_value(f)", "with a gradient, or without"),
    Step(("The same model for many data sets?", "stations, genes, people"), "qd.fit_many(log_density, start, data)", "all at once; a verdict for each"),
    Step(("More than some hundred parameters,", "of which each row sees a few?"), "qd.fit(qd.sum_of(qd.each(...)), start)", "a sparse precision keeps every correlation"),
    Step(("More than 2,000 without such structure?", "chosen by itself there"), 'family=qd.LowRank(10), or "diagonal", qd.Blocks()', "then diagnose().linear_response for the sds"),
    Step(("Do a few parameters set the spread", "of the others? sds, persistence"), "qd.nested(log_density, start, outer=[...])", "a Gaussian for each value of the outer ones"),
    Step(("Does a pass over the rows take long,", "or are they more than memory holds?"), "method=qd.Streaming(), data=numpy.memmap(...)", "of qd.each terms: some rows a step, then all"),
    Step(("Must it be as in the paper,", "or cost what another method costs?"), "draws=qd.iid(256, dim), method=qd.Alternating()", "else matched draws grow, and all is raised together"),
    Step(("Does the verdict not trust the sds?", "skewed, bent, near a bound"), 'family="auto"', "full, or warped where that is nearer"),
    Step(("Everything else", "and the way to begin"), "qd.fit(log_density, start)", "full Gaussian, matched draws, joint ascent"),
)  # fmt: skip


def decisions() -> str:
    """The picture, twice: style.css shows the one that fits."""
    return "".join(_picture(layout) for layout in LAYOUTS)


def _picture(layout: Layout) -> str:
    parts = [
        f'<svg class="decisions {layout.name}" viewBox="0 0 {layout.width} {TOP + layout.row * len(STEPS)}" role="img" '
        'aria-label="Questions that lead to what to write" xmlns="http://www.w3.org/2000/svg">',
        f'<defs><marker id="tip-{layout.name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="currentColor" opacity="0.6"/></marker></defs>',
    ]
    for number, step in enumerate(STEPS):
        parts += _drawn(layout, step, TOP + layout.row * number, last=number == len(STEPS) - 1)
    return "".join([*parts, "</svg>"])


def _drawn(layout: Layout, step: Step, top: int, last: bool) -> list[str]:
    (across, down), middle, end = layout.answer, top + HEIGHT / 2, top + HEIGHT
    right, low = LEFT + across, middle + down
    first, second = step.question
    tip = f'marker-end="url(#tip-{layout.name})"'
    lines = [
        f'<rect class="box" x="{LEFT}" y="{top}" width="{layout.question_width}" height="{HEIGHT}" rx="8"/>',
        f'<text x="{LEFT + 14}" y="{middle - 6}">{escape(first)}</text>',
        f'<text class="say" x="{LEFT + 14}" y="{middle + 14}">{escape(second)}</text>',
        f'<rect class="end" x="{right}" y="{top + down}" width="{layout.answer_width}" height="{HEIGHT}" rx="8"/>',
        f'<text class="code" x="{right + 14}" y="{low - 6}">{escape(step.write)}</text>',
        f'<text class="say" x="{right + 14}" y="{low + 14}">{escape(step.why)}</text>',
    ]
    if down:  # yes goes down at the right, no past the answer at the left
        lines.append(f'<path class="line" d="M{right + 60},{end} V{top + down - 4}" {tip}/>')
        yes = (right + 70, end + 11)
    else:
        lines.append(f'<path class="line" d="M{LEFT + layout.question_width},{middle} H{right - 4}" {tip}/>')
        yes = (LEFT + layout.question_width + 30, middle - 6)
    if not last:
        x = LEFT + (14 if down else 40)
        lines += [
            f'<text class="say" x="{yes[0]}" y="{yes[1]}">yes</text>',
            f'<path class="line" d="M{x},{end} V{top + layout.row - 4}" {tip}/>',
            f'<text class="say" x="{x + (-14 if down else 10)}" y="{end + (50 if down else 20)}">no</text>',
        ]
    return lines
