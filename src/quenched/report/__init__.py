"""Self-contained HTML pages: the report of a fit, and the parts that pages are made of.

    Document("Title").section("Heading", "a paragraph", table(columns, rows), figure(fig, "caption")).write(path)

Everything that is not `Markup` is escaped. A page makes no request: style and pictures are inside it.
"""

from quenched.report.fit_report import fit_report, write_report
from quenched.report.markup import Markup, facts, figure, picture, table, verdict_box
from quenched.report.page import Document

__all__ = ["Document", "Markup", "facts", "figure", "fit_report", "picture", "table", "verdict_box", "write_report"]
