"""The benchmark of poison: its archive is one, and the pages that it marks are the ones that are obeyed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator

from benchmarks.poison import (
    MARK,
    POISON,
    REASONS,
    Cost,
    PoisonedExtract,
    checks_of,
    page,
    poisoned,
    raw,
    write_archive,
)


def test_archive_holds_every_page_and_three_of_them_are_marked(tmp_path: Path) -> None:
    pages = poisoned([page(number, random.Random(number)) for number in range(20)])
    folder = write_archive(tmp_path / "in" / "a.warc.gz", pages)
    with (folder / "a.warc.gz").open("rb") as file:
        found = [record.reader.read() for record in ArchiveIterator(file, parse_http=True)]
    assert found == pages
    assert [content.count(MARK) for content in pages] == [
        n in {int(20 * s) for s in POISON.values()} for n in range(20)
    ]


def test_pages_without_a_mark_are_extracted_as_ever() -> None:
    pages = raw([page(number, random.Random(number)) for number in range(3)])
    extract = PoisonedExtract()
    assert extract.apply(pages).kept.equals(extract.inner.apply(pages).kept)
    assert extract.apply(pages).kept.num_rows == 3


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, None),
        ({"documents": 996}, "documents"),
        ({"verdicts": [{"reason": "crashed"}] * 3}, "verdicts"),
        ({"seconds": {"clean": 1.0, "poisoned": 92.0}}, "seconds more than without"),
        ({"equal": {"again": False}}, "same bytes when given the list"),
        ({"problems": ["a file is missing"]}, "problems"),
        ({"cost": 0.04}, "extraction, more"),
    ],
)
def test_check_fails_for_what_it_is_about_and_for_nothing_else(change: dict[str, Any], wrong: str | None) -> None:
    poison: dict[str, Any] = {"documents": 997, "of": 1000, "seconds": {"clean": 1.0, "poisoned": 50.0}, "problems": []}
    poison |= {"verdicts": [{"reason": reason} for reason in REASONS], "equal": {"again": True}, **change}
    dear = {"cpu": Cost([1.0, 1 + change.get("cost", 0.0), 1.5], [1.0, 1.0, 1.0])}
    cost = {"extraction": dear, "a user's function": {"cpu": Cost([1.1], [1.0])}}
    checks = checks_of(poison, {"honest": "kept"}, cost)
    assert [name for name, (_, _, right) in checks.items() if not right] == ([wrong] if wrong else [])
