"""The experts of a run: how evenly tokens were routed, as its log tells step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from trainers.log import Line
from viewers.curves import frame_of, plot
from viewers.markup import Child, element, join
from viewers.numbers import grouped
from viewers.panels.panel import Panel
from viewers.run_view import RunPage
from viewers.tables import Mark, table

MEASURES: Final[dict[str, tuple[str, Callable[[list[float]], float]]]] = {
    "max_violation": ("Max violation, worst layer", max),
    "overflowed": ("Overflowed choices", sum),
    "entropy": ("Router entropy, mean of layers", lambda values: sum(values) / len(values)),
    "bias_norm": ("Norm of the bias", max),
}
"""Name under `experts` of a "train" line → title, and what is made of its values by layer."""

LOAD: Final = "load"
MOST: Final = 64


def experts(run: RunPage) -> Panel | None:
    """Return the panel; None for a model without experts."""
    drawn = []
    for name, (title, whole) in MEASURES.items():
        curve = run.curve(lambda line, name=name, whole=whole: _whole(_told(line).get(name), whole))  # type: ignore[misc]
        if len(curve):
            said = "{:.4g}".format
            drawn.append(plot(title, said(curve.losses[-1]), curve, frame_of([curve]), marks=run.marks, said=said))
    if not drawn:
        return None
    lede = (
        "Max violation is the load of the fullest expert over an equal share, less one: 0 is even, and .2 is where "
        "balance is usually called good. The bias is no parameter, so its norm stands apart from those of parameters."
    )
    return Panel("experts", "Experts", lede, join([element("div", *drawn, class_="plots"), _load(run)]))


def _load(run: RunPage) -> Any:
    """Return the table of the last step's load, layer by layer."""
    last = next((_told(line)[LOAD] for line in reversed(run.train) if isinstance(_told(line).get(LOAD), list)), None)
    if not last:
        return None
    rows: list[list[Child]] = []
    for layer, load in enumerate(last[:MOST]):
        counts = list(_numbers(load))
        total = sum(counts) or 1
        rows.append(
            [
                str(layer),
                grouped(len(counts)),
                f"{min(counts) / total:.1%}",
                f"{max(counts) / total:.1%}",
                f"{1 / len(counts):.1%}",
            ]
        )
    columns = ("Layer", "Experts", "Least loaded", "Most loaded", "Equal share")
    return table("Load of experts at the last step", Mark.EXACT, columns, rows)


def _told(line: Line) -> Mapping[str, Any]:
    found = line.get("experts")
    return found if isinstance(found, Mapping) else {}


def _whole(value: Any, whole: Callable[[list[float]], float]) -> float | None:
    found = list(_numbers(value))
    return whole(found) if found else None


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)
