"""Self-contained HTML pages: the report of a fit, and the parts that pages are made of.

    Document("Title").section("Heading", "a paragraph", table(columns, rows), figure(fig, "caption")).write(path)

Everything that is not `Markup` is escaped. A page makes no request: style and pictures are inside it.
"""

from quenched.report.fit_report import fit_report, write_report
from quenched.report.markup import Markup, facts, figure, picture, table, verdict_box
from quenched.report.notebook import calibration_html, diagnosis_html, fit_html, fits_html
from quenched.report.page import Document

__all__ = [
    "Document",
    "Markup",
    "calibration_html",
    "diagnosis_html",
    "facts",
    "figure",
    "fit_html",
    "fit_report",
    "fits_html",
    "picture",
    "table",
    "verdict_box",
    "write_report",
]
