"""The graph of stages as inline SVG: columns by distance from the files, arrows from inputs to what is made of them."""

from __future__ import annotations

from typing import Final

from curate.digests import short
from viewers.loading import ProductView, Report, StageView
from viewers.markup import Markup, element
from viewers.numbers import grouped
from viewers.visible import plain, shortened

WIDTH: Final = 156
HEIGHT: Final = 68
ACROSS: Final = 174
DOWN: Final = 82
MARGIN: Final = 4
NAME: Final = 17
MOST: Final = 60
"""Stages beyond these are not drawn: the table below the picture has them all."""

_Key = tuple[str, str]
_Stage = StageView | ProductView


def draw_graph(report: Report) -> Markup | None:
    """Return the picture of the stages; None when there are too many to draw."""
    stages: tuple[_Stage, ...] = (*report.stages, *report.products)
    if len(stages) > MOST:
        return None
    places = _places(stages)
    columns = max(column for column, _ in places.values()) + 1
    rows = max(row for _, row in places.values()) + 1
    width = (columns - 1) * ACROSS + WIDTH + 2 * MARGIN
    height = (rows - 1) * DOWN + HEIGHT + 2 * MARGIN
    outputs = {_key(stage) for stage in report.outputs.values()} | {cell.stage for cell in report.cells}
    arrows = [
        _arrow(places[i["name"], i["key"]], places[_key(stage)]) for stage in stages for i in stage.manifest["inputs"]
    ]
    boxes = [_box(stage, places[_key(stage)], _key(stage) in outputs) for stage in stages]
    picture = element(
        "svg",
        *arrows,
        *boxes,
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        role="img",
        aria_label=f"Graph of {len(stages)} stages; tables of this page have the same",
    )
    return element("figure", picture, class_="graph", tabindex="0", role="region", aria_label="Graph of stages")


def _key(stage: _Stage) -> _Key:
    return stage.name, stage.key


def _places(stages: tuple[_Stage, ...]) -> dict[_Key, tuple[int, int]]:
    """Return column and row of each stage: the column follows its inputs, the row the first of them if it is free."""
    places: dict[_Key, tuple[int, int]] = {}
    for stage in stages:
        inputs = [places[i["name"], i["key"]] for i in stage.manifest["inputs"]]
        column = max((column for column, _ in inputs), default=-1) + 1
        taken = {row for c, row in places.values() if c == column}
        row = inputs[len(inputs) // 2][1] if inputs else len({r for c, r in places.values() if c == 0})
        while row in taken:
            row += 1
        places[_key(stage)] = (column, row)
    return places


def _amount(stage: _Stage) -> str:
    if isinstance(stage, StageView):
        return f"{grouped(stage.manifest['rows'])} rows"
    if stage.kind == "tokenizer":
        return f"{grouped(stage.manifest['card']['vocab_size'])} ids"
    if stage.kind == "model":
        return "a model"
    return f"{grouped(sum(cell['tokens'] for cell in stage.manifest['cells'].values()))} tokens"


def _corner(place: tuple[int, int]) -> tuple[int, int]:
    return MARGIN + place[0] * ACROSS, MARGIN + place[1] * DOWN


def _arrow(begin: tuple[int, int], end: tuple[int, int]) -> Markup:
    x, y = _corner(begin)
    right, below = _corner(end)
    x, y, below = x + WIDTH, y + HEIGHT // 2, below + HEIGHT // 2
    bend = (right - x) // 2
    path = f"M{x} {y}C{x + bend} {y} {right - bend} {below} {right} {below}"
    return element("path", d=path, class_="arrow")


def _box(stage: _Stage, place: tuple[int, int], is_output: bool) -> Markup:
    x, y = _corner(place)
    name = plain(shortened(stage.name, NAME))
    return element(
        "g",
        element("rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=3),
        element("text", name, x=x + 10, y=y + 22, class_="name"),
        element("text", _amount(stage), x=x + 10, y=y + 40),
        element("text", short(stage.key)[:8], x=x + 10, y=y + 57),
        class_="box output" if is_output else "box",
    )
