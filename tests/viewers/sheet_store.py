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


def make_sheet_store(folder: Path, sheet: Datasheet = SHEET) -> Made:
    """Run a recipe over a few documents in two files, with a datasheet."""
    for part in range(2):
        path = folder / f"in/{part}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"text": f"{words(n, 20 + n)} {n}", "lang": ("en", "de")[n % 2], "n": n} for n in range(part, 40, 2)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns: dict[str, str | Column] = {"language": Column("lang"), "n": Column("n", "int64")}
    read = read_jsonl(folder / "in", source="sheep", columns=columns, licence="CC0-1.0")
    outputs = Outputs(sheep=read.apply(MaskPII(), name="sheep"), datasheet=sheet)
    result = run(outputs, folder / "store", name="sheep", runner="local")
    return Made(folder / "store", result.folder.name, result)
