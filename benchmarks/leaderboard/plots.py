"""The figures of the page, from the same rows as its tables."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.leaderboard.summary import NEAR, Entry

_FLOOR = 1e-3  # nats: below, the judge's draws tell nothing apart
_OURS = "#c05000"
_THEIRS = ["#4477aa", "#228833", "#66ccee", "#aa3377", "#bbbb33", "#777777", "#000000"]
_MARKS = "osD^vP*X<>hd"


def _looks(methods: list[str]) -> dict[str, dict]:
    looks, place = {}, 0
    for method in methods:
        ours = method.startswith("quenched")
        looks[method] = {
            "color": _OURS if ours else _THEIRS[place % len(_THEIRS)],
            "marker": _MARKS[(list(methods).index(method)) % len(_MARKS)],
            "s": 70 if ours else 34,
            "zorder": 3 if ours else 2,
        }
        place += not ours
    return looks


def to_accuracy(entries: list[Entry], what: str, label: str, path: Path) -> None:
    """Loss against work, a panel for every problem; near the lower left corner is good."""
    problems = list(dict.fromkeys(entry.problem for entry in entries))
    looks = _looks(list(dict.fromkeys(entry.method for entry in entries)))
    columns = min(4, len(problems))
    lines = -(-len(problems) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3.1 * columns, 2.6 * lines + 1.1), squeeze=False)
    for place, problem in enumerate(problems):
        panel = axes.flat[place]
        for entry in entries:
            work = getattr(entry, what)
            if entry.problem == problem and entry.loss is not None and work is not None and work.median > 0:
                panel.scatter(work.median, max(entry.loss.median, _FLOOR), label=entry.method, **looks[entry.method])
        panel.axhline(NEAR, color="grey", lw=0.7, ls=":")
        panel.set(xscale="log", yscale="log", title=problem)
        _few_numbers(panel.xaxis)
        panel.title.set_fontsize(10)
        panel.tick_params(labelsize=8)
    for panel in axes.flat[len(problems) :]:
        panel.axis("off")
    for panel in axes[-1]:
        panel.set_xlabel(label, fontsize=9)
    for panel in axes[:, 0]:
        panel.set_ylabel("nats lost", fontsize=9)
    handles = {
        name: plt.Line2D([], [], ls="", marker=look["marker"], color=look["color"]) for name, look in looks.items()
    }
    figure.legend(handles.values(), handles, loc="lower center", ncols=5, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.9 / (2.6 * lines + 1.1), 1, 1))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _few_numbers(axis) -> None:
    """Powers of ten alone, or 1, 2 and 5 of each where hardly one is in sight: more would overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_minor_formatter(NullFormatter())
    if high < 30 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")


def against_dimension(entries: list[Entry], path: Path) -> None:
    """Nats lost and the worst error of an sd, over all problems, by their dimension."""
    looks = _looks(list(dict.fromkeys(entry.method for entry in entries)))
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6))
    for method, look in looks.items():
        own = sorted((entry for entry in entries if entry.method == method and entry.loss), key=lambda entry: entry.dim)
        axes[0].scatter([e.dim for e in own], [max(e.loss.median, _FLOOR) for e in own], label=method, **look)
        known = [entry for entry in own if entry.sd_error]
        axes[1].scatter([e.dim for e in known], [e.sd_error.median for e in known], **look)
    axes[0].axhline(NEAR, color="grey", lw=0.7, ls=":")
    axes[0].set(xscale="log", yscale="log", xlabel="dimension", ylabel="nats lost")
    axes[1].set(xscale="log", yscale="log", xlabel="dimension", ylabel="worst relative error of an sd")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=5, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.16, 1, 1))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def scaling(curves: dict[str, list[tuple[float, float, float]]], path: Path) -> None:
    """Warm time and gradients of our fits against dimension, draws and data, with their straight lines."""
    figure, axes = plt.subplots(1, len(curves), figsize=(3.6 * len(curves), 3.2), squeeze=False)
    for panel, (name, points) in zip(axes[0], curves.items(), strict=True):
        x, warm, gradients = np.array(points).T
        for values, label, colour in ((warm, "warm, s", _OURS), (gradients / 1e5, "gradients / 100,000", _THEIRS[0])):
            panel.plot(x, values, "o", color=colour, label=label, ms=4)
            slope, height = np.polyfit(np.log(x), np.log(values), 1)
            panel.plot(x, np.exp(height) * x**slope, color=colour, lw=0.8)
        panel.set(xscale="log", yscale="log", xlabel=name)
    axes[0][0].legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    plt.close(figure)
