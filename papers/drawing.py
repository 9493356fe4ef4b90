"""Figures by matplotlib.

Colours of Okabe and Ito, which the colour-blind tell apart, with a mark and a dash for each line
so that black and white will do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from papers.contents import Figure

_LINES = (
    ("#0072b2", "o", "-"), ("#d55e00", "s", "--"), ("#009e73", "^", "-."), ("#cc79a7", "D", ":"),
    ("#000000", "v", "-"), ("#e69f00", "P", "--"), ("#56b4e9", "X", "-."), ("#999999", "*", ":"),
)  # fmt: skip
_GREY = "#444444"
_LONG = 200  # from one end of a logarithmic axis to the other


def lines(
    caption: str,
    x: Sequence[float | str],
    curves: Mapping[str, Sequence[float | None]],
    *,
    x_label: str,
    y_label: str,
    spreads: Mapping[str, Sequence[float]] | None = None,
    logarithmic: bool = False,
) -> Figure:
    """A line for each curve over the same places, side by side at equal distances.

    `spreads` draws a bar up and down at each point; None leaves a gap.
    """
    picture = Picture(figsize=(6.4, 3.6), layout="constrained")
    axes = picture.subplots()
    for (name, y), (colour, mark, dash) in zip(curves.items(), _LINES, strict=False):
        bars = None if spreads is None or name not in spreads else spreads[name]
        axes.errorbar(
            range(len(x)), np.array(y, float), bars, label=name, color=colour, marker=mark,
            linestyle=dash, capsize=3, linewidth=1.8, elinewidth=1,
        )  # fmt: skip
    axes.set_xticks(range(len(x)), [str(place) for place in x])
    if logarithmic:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis, *axes.get_ylim())
    _finish(axes, x_label, y_label)
    says = "; ".join(f"{name}: {_listed(y)}" for name, y in curves.items())
    numbers = {"x": list(x), "curves": dict(curves), "spreads": dict(spreads or {})}
    return Figure(caption, f"{y_label} over {x_label} {_listed(x)}. {says}", svg(picture), numbers)


def curves(
    caption: str,
    x: Mapping[str, Sequence[float]],
    y: Mapping[str, Sequence[float]],
    *,
    x_label: str,
    y_label: str,
) -> Figure:
    """A line for each curve over places of its own, along a logarithmic axis."""
    picture = Picture(figsize=(6.4, 4.2), layout="constrained")
    axes = picture.subplots()
    for name, (colour, mark, dash) in zip(y, _LINES, strict=False):
        axes.plot(
            x[name], y[name], label=name, color=colour, marker=mark, markersize=4, linestyle=dash,
            linewidth=1.6,
        )  # fmt: skip
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis, *axes.get_xlim())
    _finish(axes, x_label, y_label)
    says = "; ".join(f"{name}: {_listed(y[name])} at {_listed(x[name])}" for name in y)
    numbers = {"x": {name: list(x[name]) for name in y}, "y": {n: list(v) for n, v in y.items()}}
    return Figure(caption, f"{y_label} over {x_label}. {says}", svg(picture), numbers)


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points in the plane `(n, 2)` and their mean `(2,)`, to which a line leads from 0."""

    name: str
    points: Any
    mean: Any
    dashed: bool = False


def projections(caption: str, panels: Mapping[str, Sequence[Cloud]]) -> Figure:
    """Clouds of points in the plane, a picture for each panel side by side."""
    picture = Picture(figsize=(3.6 * len(panels), 3.8), layout="constrained")
    for axes, (title, clouds) in zip(
        np.atleast_1d(picture.subplots(1, len(panels))), panels.items(), strict=True
    ):
        for cloud, (colour, mark, _) in zip(clouds, _LINES, strict=False):
            axes.scatter(*np.transpose(cloud.points), s=12, color=colour, marker=mark, alpha=0.45)
            axes.plot(
                *np.transpose([np.zeros(2), cloud.mean]), color=colour, label=cloud.name,
                linestyle="--" if cloud.dashed else "-", linewidth=1.8,
            )  # fmt: skip
        axes.set_title(title, fontsize=10, color=_GREY)
        axes.set_aspect("equal", adjustable="datalim")
        _finish(axes, "", "")
    numbers = {title: {c.name: list(c.mean) for c in clouds} for title, clouds in panels.items()}
    says = "; ".join(
        f"{title}: means at "
        + ", ".join(f"{cloud.name} ({_listed(cloud.mean)})" for cloud in clouds)
        for title, clouds in panels.items()
    )
    return Figure(caption, says, svg(picture), numbers)


def svg(picture: Picture) -> str:
    """A matplotlib figure as SVG, the same text for the same figure."""
    text = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "umpteen"}):
        picture.savefig(text, format="svg", metadata={"Date": None}, facecolor="white")
    return text.getvalue()


def _plain_numbers(axis: Any, low: float, high: float) -> None:
    """Write 0.1, 1 and 10 along a logarithmic axis, with 0.2, 0.5 and so on if it is short."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _LONG * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _finish(axes: Any, x_label: str, y_label: str) -> None:
    axes.set_xlabel(x_label, color=_GREY)
    axes.set_ylabel(y_label, color=_GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=0, labelcolor=_GREY)
    axes.yaxis.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    many = len(axes.get_legend_handles_labels()[1]) > 5  # would cover the lines
    axes.legend(
        frameon=False, **({"loc": "center left", "bbox_to_anchor": (1, 0.5)} if many else {})
    )


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(
        f"{value:.3g}" if isinstance(value, float | np.floating) else str(value) for value in values
    )
