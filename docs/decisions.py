"""The picture on the page "How to choose": questions, and what to write. Drawn as SVG, so that nothing is fetched to show it."""

from html import escape
from typing import NamedTuple

WIDTH, ROW, TOP = 900, 92, 16
LEFT, RIGHT = 20, 470  # where questions and answers begin
QUESTION_WIDTH, ANSWER_WIDTH, HEIGHT = 330, 410, 60


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
    Step(("Must it be as in the paper,", "or cost what another method costs?"), "draws=qd.iid(256, dim), method=qd.Alternating()", "else matched draws grow as needed, and all is raised together"),
    Step(("Does the verdict not trust the sds?", "skewed, bent, near a bound"), 'family="auto"', "full, or warped where that is nearer"),
    Step(("Everything else", "and the way to begin"), "qd.fit(log_density, start)", "full Gaussian, matched draws, joint ascent"),
)  # fmt: skip


def decisions() -> str:
    """The picture."""
    height = TOP + ROW * len(STEPS)
    parts = [
        '<div class="decisions-scroll">'
        f'<svg class="decisions" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Questions that lead to what to write" '
        'xmlns="http://www.w3.org/2000/svg">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="currentColor" opacity="0.6"/></marker></defs>',
    ]
    for number, step in enumerate(STEPS):
        parts += _drawn(step, TOP + ROW * number, last=number == len(STEPS) - 1)
    return "".join([*parts, "</svg></div>"])


def _drawn(step: Step, top: int, last: bool) -> list[str]:
    middle = top + HEIGHT / 2
    first, second = step.question
    lines = [
        f'<rect class="box" x="{LEFT}" y="{top}" width="{QUESTION_WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text x="{LEFT + 14}" y="{middle - (6 if second else -5)}">{escape(first)}</text>',
        f'<text class="say" x="{LEFT + 14}" y="{middle + 14}">{escape(second)}</text>' if second else "",
        f'<path class="line" d="M{LEFT + QUESTION_WIDTH},{middle} H{RIGHT - 4}" marker-end="url(#tip)"/>',
        f'<rect class="end" x="{RIGHT}" y="{top}" width="{ANSWER_WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text class="code" x="{RIGHT + 14}" y="{middle - 6}">{escape(step.write)}</text>',
        f'<text class="say" x="{RIGHT + 14}" y="{middle + 14}">{escape(step.why)}</text>',
    ]
    if not last:
        x, end = LEFT + 40, top + HEIGHT
        lines += [
            f'<text class="say" x="{LEFT + QUESTION_WIDTH + 30}" y="{middle - 6}">yes</text>',
            f'<path class="line" d="M{x},{end} V{end + ROW - HEIGHT - 4}" marker-end="url(#tip)"/>',
            f'<text class="say" x="{x + 10}" y="{end + 20}">no</text>',
        ]
    return lines
