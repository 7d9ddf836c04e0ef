"""What the pages take from elsewhere, when they are built: the README, the changelog, tables of the code itself, those of the
paper, the rooms, and the gallery, whose examples are run.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))  # MkDocs takes it back once this file has been read

import decisions as pictured  # noqa: E402
import gallery  # noqa: E402
import messages as raised  # noqa: E402
import paper_tables  # noqa: E402
import rooms  # noqa: E402


def on_config(config, **_):
    """Lists the pages that are made, under their headings in the navigation."""
    made = {
        "Gallery": ["gallery/index.md", *(f"gallery/{path.stem}.md" for path in gallery.paths())],
        "Rooms": ["rooms/index.md", *(f"rooms/{room.name}.md" for room in rooms.rooms())],
    }
    config.nav = _listed(config.nav, made)
    return config


def _listed(entries: list, made: dict[str, list[str]]) -> list:
    """The navigation with the pages that are made in place of their headings, and without pages of others that are not there yet."""
    found = []
    for entry in entries:
        ((heading, below),) = entry.items()
        if isinstance(below, list):
            found.append({heading: _listed(below, made)})
        elif heading in made:
            found.append({heading: made[heading]})
        elif below != "benchmarks.md" or (ROOT / "docs" / below).exists():
            found.append(entry)
    return found


def on_files(files, config, **_):
    """Adds the pages of the gallery, with their pictures, and those of the rooms."""
    from mkdocs.structure.files import File

    found = gallery.examples()
    texts = {f"gallery/{example.path.stem}.md": gallery.page(example) for example in found}
    texts["gallery/index.md"] = gallery.index(found)
    texts |= {f"rooms/{room.name}.md": rooms.page(room) for room in rooms.rooms()}
    texts["rooms/index.md"] = rooms.index()
    for address, text in texts.items():
        files.append(File.generated(config, address, content=text))
    for example in found:
        for name in example.pictures:
            files.append(File.generated(config, f"gallery/{name}", abs_src_path=str(example.folder / name)))
    return files


def on_page_markdown(markdown: str, page, **_) -> str:
    """Replace `<!-- name -->` by what the function of that name gives."""
    return re.sub(r"<!-- (\w+) -->", lambda found: PARTS[found[1]](), markdown)


def readme() -> str:
    """With its links as they are from here."""
    return (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .replace("(docs/", "(")
        .replace("(examples/gallery/)", "(gallery/index.md)")
    )


def changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def rules() -> str:
    """Every rule by which an answer is judged, in the order in which they are tried."""
    from quenched.trust import RULES

    says = raised.reasons("trust/answer.py", "Rule", 3)
    rows = [f"| {rule.trust.words} | {rule.name} | {says[rule.name]} | {REMEDIES[rule.name]} |" for rule in RULES]
    return "\n".join(["| the verdict begins with | rule | and goes on | what to do |", "|---|---|---|---|", *rows])


def statuses() -> str:
    """Every status of a fit."""
    from quenched import Status

    rows = [f"| `{status.value}` | {status.message} |" for status in Status]
    return "\n".join(["| `fit.status` | it says |", "|---|---|", *rows])


def reference() -> str:
    """Every public name: functions and classes by their address, things such as `positive` by the docstring of their class."""
    import quenched

    names = sorted(quenched.__all__, key=lambda name: (name[0].isupper(), name.lower()))
    parts = []
    for name in names:
        thing = getattr(quenched, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            parts.append(f"::: {thing.__module__}.{name}")  # `quenched.fit` alone might be the module of that name
        else:
            words, _, example = (inspect.getdoc(thing) or "").partition("\nExamples\n--------\n")
            parts.append(f"## `{name}`\n\n{words.strip()}\n\n**Examples:**\n\n```pycon\n{example.strip()}\n```")
    return "\n\n".join(parts)


def beyond() -> str:
    """What has an example in the rooms that people import from, and of what a fit gives."""
    import quenched

    parts = []
    for heading, rooms_of in BEYOND.items():
        parts.append(f"## {heading}")
        for room in rooms_of:
            door = importlib.import_module(f"quenched.{room}")
            things = {name: getattr(door, name) for name in door.__all__}
            for name, thing in things.items():
                made = inspect.isfunction(thing) or inspect.isclass(thing)
                if made and ">>>" in (inspect.getdoc(thing) or "") and thing is not getattr(quenched, name, None):
                    parts.append(f"::: {thing.__module__}.{thing.__name__}\n    options:\n      heading_level: 3")
    return "\n\n".join(parts)


def findings() -> str:
    """Every finding of a diagnosis."""
    from quenched.diagnostics.verdict import FINDINGS

    says = raised.reasons("diagnostics/verdict.py", "Finding", 2)
    rows = [f"| {finding.name} | {says[finding.name]} | {FOUND[finding.name]} |" for finding in FINDINGS]
    return "\n".join(["| a diagnosis may find | it says | what it means, and what to do |", "|---|---|---|", *rows])


def plots() -> str:
    """Every plot, and what other figures are made with."""
    import quenched.plots

    things = {name: getattr(quenched.plots, name) for name in quenched.plots.__all__}
    shown = sorted((name for name, thing in things.items() if callable(thing)), key=lambda name: name[:5] != "plot_")
    return "\n\n".join(f"::: {things[name].__module__}.{name}" for name in shown)


def decisions() -> str:
    """The picture of questions."""
    return pictured.decisions()


def messages() -> str:
    """Every error that is raised on purpose."""
    return raised.table()


def sentences() -> str:
    """Every sentence that is said without being raised."""
    return raised.table_of_sentences()


# The rooms behind each heading of the second page of the reference.
BEYOND = {
    "Estimators": ("models",),
    "Methods to compare with": ("baselines",),
    "Ground motion": ("science",),
    "What a fit gives": ("trust", "posterior", "results", "diagnostics", "export"),
}

# What a finding means. One without a line is a mistake, and ends the build.
FOUND = {
    "not a maximum": "The bound still rises in some direction: `qd.fit(log_density, fit)` goes on, or start elsewhere (`starts=8`).",
    "short of the top": "More is to be gained on these draws: `qd.fit(log_density, fit, method=qd.Joint(gradient_tolerance=1e-6))`.",
    "draws matter": "Other draws would give clearly other means or sds: give more, as many as it says.",
    "draws suffice": "Nothing to do: the standard errors due to the draws stand in the table.",
    "correlations left out": "The family leaves out correlations that the means know of: read the sds of `diagnosis.linear_response`, or "
    "take a larger family.",
    "driven": "The spread of the others changes with the parameters that are named (a funnel): write the model non-centred, or nest "
    "them: `qd.nested(log_density, start, outer=[...])`.",
    "inner shapes": "Of a nested fit: whether the outer posterior follows its bound (then the inner parameters are not Gaussian given the outer "
    "ones: reparametrise them, or name more of them as outer), or not (then it needs more draws).",
    "skewed": 'The target is skewed along the parameters that are named: `family="auto"`, or another scale for them.',
    "copies elsewhere": "The log density has equal copies (exchanged components, changed signs): add what it says to the evidence, or order "
    "the components (`qd.ordered`).",
}

# What helps, by the rule that holds. A rule without a remedy is a mistake, and ends the build.
REMEDIES = {
    "did not end well": "What the status says, below; `qd.fit(log_density, fit)` goes on from where it stopped.",
    "not finite": "Give the parameter that is named a transform that keeps it inside the support, or mend the log density "
    "where it is NaN: `jnp.where` around the argument of a logarithm or a square root, not around its result.",
    "lost to rounding": "Leave out the constant that makes the log density so large.",
    "overfits": "More draws (`draws=`, `max_draws=`), matched ones (the default), or a smaller family.",
    "no check": "Leave `check=` to the library, or give at least 100.",
    "another mode": "Fit it from there too, and compare `fit.bound`; where both modes count, MCMC with chains that begin in each, or a "
    "model that has one (`qd.ordered` for labels, `qd.positive` for a sign). See [several modes](#several-modes).",
    "family is far off": '`family="auto"`; another parametrisation (a funnel: from centred to non-centred, or back); `qd.nested` over the '
    "parameters that drive the others; MCMC from `fit.nuts_start()`.",
    "means differ": '`family="auto"`, or `fit.resample(n)`, whose samples are moved to the target.',
    "means further out": '`family="auto"`, or MCMC from `fit.nuts_start()`: `fit.resample(n)` does not reach that far.',
    "much wider": 'A funnel: from centred to non-centred, or back; `qd.nested` over the parameter that is named; `family="auto"`; MCMC from '
    "`fit.nuts_start()`.",
    "infinite further out": "Look at the log density beyond the point that is named: it has no integral if it is infinite there.",
    "tails differ": 'Use the means. For sds and far probabilities take `family="auto"` or MCMC from `fit.nuts_start()`.',
    "not finite further out": "Look at the log density beyond the point that is named.",
    "sds differ": '`family="auto"`, or `fit.resample(n)`.',
    "further out": 'Use the means. For sds take `family="auto"` or MCMC from `fit.nuts_start()`.',
    "wider": 'Use the means. For sds `family="auto"`, or `qd.nested` over the parameter that is named.',
    "draws matter": "More draws: raise `max_draws`, or lower `tolerance`.",
    "family nearly fits": '`family="auto"`; the means are right.',
    "heavier tails": "Use it; trust no probability far out.",
    "fits": "Use it.",
}

PARTS = {
    "readme": readme,
    "changelog": changelog,
    "rules": rules,
    "statuses": statuses,
    "findings": findings,
    "messages": messages,
    "sentences": sentences,
    "decisions": decisions,
    "plots": plots,
    "reference": reference,
    "beyond": beyond,
    "densities": paper_tables.densities,
    "logistic": paper_tables.logistic,
    "multiclass": paper_tables.multiclass,
    "linear": paper_tables.linear,
    "faces": paper_tables.faces,
    "groundmotion": paper_tables.groundmotion,
    "improved": paper_tables.improved,
    "improved_seconds": paper_tables.improved_seconds,
}
