"""A page: a title, sections, and the style, in one file that asks the network for nothing."""

from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from quenched.files import write_whole
from quenched.report.markup import Markup, escape, part

# The browser refuses whatever is not in the file, should a part ever name it.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Document:
    """A page that grows by sections; each call of `section` returns a longer page.

    Attributes
    ----------
    title
        Also the title of the browser's window.
    subtitle
        One line below it.
    footer
        One line at the end.
    """

    title: str
    subtitle: str = ""
    footer: str = ""
    parts: tuple[Markup, ...] = ()

    def section(self, heading: str, *parts: Any) -> "Document":
        """The page with one more section; parts that are not `Markup` become paragraphs. A heading may be empty."""
        title = f"<h2>{escape(heading)}</h2>\n" if heading else ""
        body = "\n".join(part(value) for value in parts)
        return replace(self, parts=(*self.parts, Markup(f"<section>\n{title}{body}\n</section>")))

    def __str__(self) -> str:
        style = resources.files("quenched.report").joinpath("page.css").read_text(encoding="utf-8")
        subtitle = f'<p class="subtitle">{escape(self.subtitle)}</p>' if self.subtitle else ""
        footer = f"<footer>{escape(self.footer)}</footer>" if self.footer else ""
        sections = "\n".join(self.parts)
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">
<title>{escape(self.title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
<header><h1>{escape(self.title)}</h1>{subtitle}</header>
{sections}
{footer}
</main>
</body>
</html>
"""

    def write(self, path: str | Path) -> Path:
        """Write the page. The file appears whole or not at all."""
        return write_whole(path, lambda file: file.write(str(self).encode()))
