"""A small store whose recipe answers its datasheet: for the datasheet, Croissant and the map."""

from __future__ import annotations

import json
from pathlib import Path

from curate import Column, Datasheet, Outputs, read_jsonl
from curate.run import run
from tests.viewers.stores import HOSTILE, Made, words
from transforms import MaskPII

SHEET = Datasheet(
    purpose="To try the datasheet.",
    creators="The makers of curate",
    avoid="Training anything.",
    maintainer=f"Nobody {HOSTILE[5]}",
    name="Sheep & <b>wolves</b>",
    version="1.2.0",
    licence="https://spdx.org/licenses/CC0-1.0",
    url="https://example.org/sheep",
    citation="The makers, 2026",
    published="2026-03-01",
    gaps=("Half of it is made up.", HOSTILE[0]),
)


def row(number: int) -> dict[str, object]:
    """Return a document; every fourth has no date."""
    when = f"20{10 + number % 3}-0{1 + number % 9}-01T00:00:00Z" if number % 4 else None
    return {
        "text": f"{words(number, 20 + number)} {number}",
        "lang": ("en", "de")[number % 2],
        "n": number,
        "when": when,
    }


def make_sheet_store(folder: Path, sheet: Datasheet = SHEET) -> Made:
    """Run a recipe over a few documents in two files, with a datasheet."""
    for part in range(2):
        path = folder / f"in/{part}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [row(n) for n in range(part, 40, 2)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns: dict[str, str | Column] = {"language": Column("lang"), "n": Column("n", "int64"), "crawled_at": "when"}
    read = read_jsonl(folder / "in", source="sheep", columns=columns, licence="CC0-1.0")
    outputs = Outputs(sheep=read.apply(MaskPII(), name="sheep"), datasheet=sheet)
    result = run(outputs, folder / "store", name="sheep", runner="local")
    return Made(folder / "store", result.folder.name, result)
