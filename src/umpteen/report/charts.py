"""Charts as SVG that follow the page's colours; each says in words what it shows."""

from typing import Any

from umpteen.markup import Html, percent, tag
from umpteen.metrics.reliability import Bin, Reliability

FEW = 20
_WIDTH = 340


def bars(title: str, names: list[str], values: list[float], full: float) -> Html:
    """Return horizontal bars of shares; a bar as long as the chart is `full`."""
    rows = list(zip(names, values, strict=True))
    left, right, step = 10 + 7 * max(map(len, names), default=0), 44, 22
    height = step * len(rows) + 4
    elements = []
    for i, (name, value) in enumerate(rows):
        middle = step * i + step / 2 + 2
        length = (_WIDTH - left - right) * min(value / full, 1) if full else 0
        elements += [
            _text(left - 8, middle, name, "end"),
            _rect(left, middle - 7, _WIDTH - left - right, 14, "track"),
            _rect(left, middle - 7, length, 14, "bar"),
            _text(_WIDTH, middle, percent(value), "end", "value"),
        ]
    summary = ", ".join(f"{name}: {percent(value)} %" for name, value in rows)
    return tag("figure", tag("figcaption", title), _svg(height, f"{title}. {summary}", *elements))


def reliability_diagram(reliability: Reliability) -> Html:
    """Draw the share of right answers over their probability; on the diagonal, both agree."""
    plot = _Plot(left=48, top=10, width=282, height=230)
    filled = [group for group in reliability.bins if group.count]
    elements = [*_grid(plot)]
    elements += [_bin_bar(plot, group) for group in filled]
    elements.append(
        tag("line", x1=plot.x(0), y1=plot.y(0), x2=plot.x(1), y2=plot.y(1), class_="diagonal")
    )
    elements += [
        tag(
            "circle",
            cx=plot.x(group.mean_probability),
            cy=plot.y(group.share_right),
            r=4,
            class_="dot",
        )
        for group in filled
    ]
    elements += _counts(plot, reliability.bins)
    summary = "; ".join(
        f"probability {group.mean_probability:.2f}: {percent(group.share_right)} % right"
        for group in filled
    )
    return _svg(plot.height + 116, f"Share of right answers by probability. {summary}", *elements)


class _Plot:
    """Where values from 0 to 1 are on the picture."""

    def __init__(self, *, left: int, top: int, width: int, height: int) -> None:
        self.left, self.top, self.width, self.height = left, top, width, height

    def x(self, value: float) -> float:
        return round(self.left + self.width * value, 2)

    def y(self, value: float) -> float:
        return round(self.top + self.height * (1 - value), 2)


def _grid(plot: _Plot) -> list[Html]:
    elements = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        ends = {"x1": plot.x(0), "x2": plot.x(1), "y1": plot.y(tick), "y2": plot.y(tick)}
        elements.append(tag("line", **ends, class_="grid"))
        elements.append(_text(plot.left - 6, plot.y(tick), f"{100 * tick:.0f} %", "end"))
        elements.append(_text(plot.x(tick), plot.y(0) + 13, f"{tick:g}", "middle"))
    return elements


def _bin_bar(plot: _Plot, group: Bin) -> Html:
    right = f"{group.count:,} answers, {percent(group.share_right)} % right"
    return _rect(
        plot.x(group.low) + 1,
        plot.y(group.share_right),
        plot.width * (group.high - group.low) - 2,
        plot.height * group.share_right,
        "bin few" if group.count < FEW else "bin",
        tag("title", f"{group.low:.1f} to {group.high:.1f}: {right}"),
    )


def _counts(plot: _Plot, bins: list[Bin]) -> list[Html]:
    """How many answers each bin has, as a strip below the diagram."""
    most = max((group.count for group in bins), default=0) or 1
    bottom, highest = plot.y(0) + 84, 36
    elements = [
        _text(plot.x(0.5), plot.y(0) + 30, "probability; below: how many answers", "middle")
    ]
    for group in bins:
        height = highest * group.count / most
        width = plot.width * (group.high - group.low)
        elements.append(_rect(plot.x(group.low) + 1, bottom - height, width - 2, height, "count"))
        middle = plot.x((group.low + group.high) / 2)
        elements.append(_text(middle, bottom + 9, compact(group.count), "middle"))
    return elements


def compact(count: int) -> str:
    """Return a count in four characters or fewer.

    >>> compact(950), compact(9_512), compact(1_234_567)
    ('950', '9.5k', '1.2M')
    """
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return (
                f"{count / size:.1f}{unit}" if count < 9.95 * size else f"{count / size:.0f}{unit}"
            )
    return str(count)


def _svg(height: float, says: str, *elements: Html) -> Html:
    box = f"0 0 {_WIDTH} {height:g}"
    return tag("svg", *elements, viewBox=box, role="img", aria_label=says)


def _rect(x: float, y: float, width: float, height: float, kind: str, *inside: Html) -> Html:
    place: dict[str, Any] = {"x": x, "y": y, "width": max(width, 0), "height": max(height, 0)}
    return tag("rect", *inside, **{key: f"{v:.2f}" for key, v in place.items()}, class_=kind)


def _text(x: float, y: float, text: str, anchor: str, kind: str | None = None) -> Html:
    return tag("text", text, x=f"{x:.2f}", y=f"{y + 4:.2f}", text_anchor=anchor, class_=kind)
