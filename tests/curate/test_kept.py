"""What a shard keeps in numbers: cells of topic and level, scores by host, hosts of drawn documents, for any cut."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from blake3 import blake3

from curate.accounting.drawn_hosts import DRAWN, OF_CELL
from curate.accounting.kept import Kept
from curate.accounting.measures import measure
from curate.accounting.months import months_of
from curate.accounting.samples import Samples
from curate.accounting.statistics import merge
from transforms.schema import BASE, NOT_CHECKED

MORE = {
    "url": pa.large_string(),
    "topic": pa.large_string(),
    "quality_level": pa.int32(),
    "quality_score": pa.int64(),
}
SCHEMA = pa.schema([*BASE, *(pa.field(name, kind) for name, kind in MORE.items())])


def made(count: int, hosts: int) -> list[dict[str, Any]]:
    """Return rows of this many hosts, the first of which has every third document."""
    draw = random.Random(7)
    return [
        {
            "id": blake3(str(n).encode()).digest(16),
            "text": "x" * (n % 50),
            "source": "s",
            "origin": {"uri": "a", "place": "row", "offset": n, "length": 1, "part": 0},
            "licence": "MIT",
            "licence_basis": "user",
            "optout": NOT_CHECKED,
            "url": None if n % 11 == 0 else f"http://h{0 if n % 3 == 0 else draw.randrange(hosts)}.example/{n}",
            "topic": None if n % 13 == 0 else f"topic {n % 4}",
            "quality_level": None if n % 17 == 0 else n % 3,
            "quality_score": None if n % 19 == 0 else draw.choice((-(2**31), 2**31 - 1, 2**31, n)),
        }
        for n in range(count)
    ]


def counted(rows: list[dict[str, Any]], size: int) -> dict[str, Any]:
    """Return what is counted of `rows` in batches of `size`."""
    kept = Kept()
    for start in range(0, len(rows), size):
        batch = pa.RecordBatch.from_pylist(rows[start : start + size], schema=SCHEMA)
        kept.count(batch, measure(batch), Samples(), lambda source: False)
    return kept.statistics()


def by_cell(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the rows with a host by topic and level."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["url"] and row["topic"] and row["quality_level"] is not None:
            cells.setdefault((row["topic"], str(row["quality_level"])), []).append(row)
    return cells


def test_cells_scores_and_drawn_hosts_are_those_of_the_rows_for_any_cut() -> None:
    rows = made(3000, 2000)
    found = counted(rows, 4096)
    assert merge(counted(rows[:700], 64), counted(rows[700:], 900)) == found
    cells = Counter((row["topic"], str(row["quality_level"])) for row in rows)
    size: Counter[tuple[str, str]] = Counter()
    for row in rows:
        size[row["topic"], str(row["quality_level"])] += len(row["text"])
    assert {
        (topic, level): (counts["documents"], counts["characters"])
        for topic, levels in found["cells"]["quality_level"].items()
        for level, counts in levels.items()
    } == {cell: (cells[cell], size[cell]) for cell in cells if None not in cell and "None" not in cell}
    for (topic, level), mine in by_cell(rows).items():
        lowest = sorted(mine, key=lambda row: row["id"])[:OF_CELL]
        drawn = found["cells"]["quality_level"][topic][level]["drawn"]["least"].values()
        assert [entry["name"] for entry in drawn] == [row["url"].split("/")[2] for row in lowest]
    scores: dict[str, list[int]] = {}
    for row in rows:
        if row["url"] and row["quality_score"] not in (None, 2**31):
            scores.setdefault(row["url"].split("/")[2], []).append(row["quality_score"])
    for entry in found["hosts"]["most"]["least"].values():
        mine = scores.get(entry["name"], [])
        told = entry.get("scores", {}).get("quality_score", {"count": 0, "sum_of_scores": 0, "sum_of_squares": 0})
        assert told == {"count": len(mine), "sum_of_scores": sum(mine), "sum_of_squares": sum(s * s for s in mine)}
    lowest = sorted((row for row in rows if row["url"]), key=lambda row: row["id"])[:DRAWN]
    drawn = found["hosts"]["drawn"]["least"].values()
    assert Counter(entry["name"] for entry in drawn) == Counter(row["url"].split("/")[2] for row in lowest)
    assert {entry["documents"] for entry in drawn} == {1}


def test_documents_of_one_id_and_two_hosts_merge() -> None:
    first, second = made(2, 5)[1:], made(2, 5)[1:]
    second[0]["url"] = "http://other.example/"
    merged = merge(counted(first, 1), counted(second, 1))
    assert len(merged["hosts"]["drawn"]["least"]) == 2 and merged == counted([*first, *second], 2)


def test_months_of_crawls_are_utc_and_bounded() -> None:
    days = ["2008-05-31T23:59:59.999", "2008-06-01T00:00:00", "1969-12-31T23:59:59", "1990-01-01T00:00:00"]
    times = np.array([*days, "2100-01-01T00:00:00", "2099-12-31T23:59:59"], "datetime64[ms]")
    found = months_of(pa.array(times).cast(pa.timestamp("ms", "UTC")))
    assert found == ["2008-05", "2008-06", "other", "1990-01", "other", "2099-12"]
