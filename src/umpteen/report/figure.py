"""The picture of a report. matplotlib is optional, so it is imported when a picture is drawn."""

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from umpteen.extras import require
from umpteen.metrics.reliability import Reliability
from umpteen.writing import save_picture

if TYPE_CHECKING:
    from umpteen.report.report import Report

_BANDS = {"head": "#08519c", "torso": "#4292c6", "tail": "#e6862e", "unseen": "#a63603"}
_GREY = "#555555"


def save(report: "Report", path: str | PathLike[str]) -> None:
    """Draw the report and save it; the user's own figures and backend stay as they are."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    panels: list[Callable[[Any, Report], None]] = [_metrics]
    if report.bands:
        panels += [_bands, _deciles]
    if report.reliability is not None:
        panels.append(partial(_reliability, found=report.reliability))
    picture = Figure(figsize=(4.6 * len(panels) + 0.6, 4.4), layout="constrained")
    for axes, draw in zip(picture.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        draw(axes, report)
    save_picture(picture, path, dpi=150)


def _metrics(axes: Any, report: "Report") -> None:
    names = report.metric_names[::-1]
    height = 0.8 / len(report.ks)
    shades = require("matplotlib", "plots").colormaps["Blues"]
    for i, k in enumerate(report.ks):
        places = [row + 0.4 - height * (i + 0.5) for row in range(len(names))]
        values = [100 * report.metrics[f"{name}@{k}"] for name in names]
        axes.barh(
            places,
            values,
            0.9 * height,
            color=shades(0.4 + 0.5 * (i + 1) / len(report.ks)),
            label=f"@{k}",
        )
    axes.set_yticks(range(len(names)), names)
    axes.legend(
        frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.06), ncols=len(report.ks)
    )
    _finish(axes.xaxis, axes, "Metrics (%)")


def _bands(axes: Any, report: "Report") -> None:
    for i, band in enumerate(report.bands):
        axes.bar(i, 100 * band.recall, 0.6, color=_BANDS[band.name])
        axes.annotate(f"{100 * band.recall:.1f}", (i, 100 * band.recall), ha="center", va="bottom")
    names = [f"{band.name}\n{band.n_labels:,} labels" for band in report.bands]
    axes.set_xticks(range(len(names)), names)
    _finish(axes.yaxis, axes, f"Recall@{max(report.ks)} (%) by training frequency")


def _deciles(axes: Any, report: "Report") -> None:
    values = [100 * decile.recall for decile in report.deciles]
    axes.plot(values, marker="o", color=_BANDS["head"], linewidth=2, clip_on=False)
    names = [decile.span for decile in report.deciles]
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)
    axes.set_xlabel("training samples per label, tenths of the labels", color=_GREY)
    _finish(axes.yaxis, axes, f"Recall@{max(report.ks)} (%) by decile")


def _reliability(axes: Any, report: "Report", found: Reliability) -> None:
    for group in found.bins:
        width = group.high - group.low
        axes.bar(group.low, 100 * group.share_right, 0.95 * width, align="edge", color="#9ecae1")
    axes.plot([0, 1], [0, 100], linestyle="--", color=_GREY)
    axes.set_xlabel("probability", color=_GREY)
    error = 100 * found.expected_calibration_error
    _finish(axes.yaxis, axes, f"Right answers (%), ECE {error:.1f} points")


def _finish(value_axis: Any, axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=0, labelcolor=_GREY)
    value_axis.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    (axes.set_xlim if value_axis.axis_name == "x" else axes.set_ylim)(0, 100)
