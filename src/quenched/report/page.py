"""A page: a title, a list of contents, sections, style and script, in one file that asks the network for nothing."""

import base64
import hashlib
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from quenched.files import write_whole
from quenched.report.markup import Markup, escape, part

# The browser refuses whatever is not in the file, and every script but ours, should a part ever hold one.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src '{}'"
_LISTED = 3  # headings that are worth a list of contents


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
    headings: tuple[str, ...] = ()

    def section(self, heading: str, *parts: Any) -> "Document":
        """The page with one more section; parts that are not `Markup` become paragraphs. A heading may be empty."""
        title = f'<h2 id="{_anchor(len(self.headings))}">{escape(heading)}</h2>\n' if heading else ""
        body = "\n".join(part(value) for value in parts)
        section = Markup(f"<section>\n{title}{body}\n</section>")
        return replace(
            self, parts=(*self.parts, section), headings=(*self.headings, heading) if heading else self.headings
        )

    def _contents(self) -> str:
        if len(self.headings) < _LISTED:
            return ""
        links = "".join(f'<li><a href="#{_anchor(i)}">{escape(name)}</a></li>' for i, name in enumerate(self.headings))
        return f'<nav class="contents" aria-label="Contents"><ol>{links}</ol></nav>'

    def __str__(self) -> str:
        style, script = _file("page.css"), _file("page.js")
        own = "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        subtitle = f'<p class="subtitle">{escape(self.subtitle)}</p>' if self.subtitle else ""
        footer = f"<footer>{escape(self.footer)}</footer>" if self.footer else ""
        sections = "\n".join(self.parts)
        contents = self._contents()
        return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY.format(own))}">
<title>{escape(self.title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<div class="page{" listed" if contents else ""}">
{contents}
<main>
<header><div><h1>{escape(self.title)}</h1>{subtitle}</div><button class="theme" type="button" hidden>Light or dark</button></header>
{sections}
{footer}
</main>
</div>
<dialog aria-label="A figure, enlarged"><figure></figure></dialog>
<script>{script}</script>
</body>
</html>
"""

    def write(self, path: str | Path) -> Path:
        """Write the page. The file appears whole or not at all."""
        return write_whole(path, lambda file: file.write(str(self).encode()))


def _anchor(number: int) -> str:
    return f"section-{number + 1}"


def _file(name: str) -> str:
    return resources.files("quenched.report").joinpath(name).read_text(encoding="utf-8")
