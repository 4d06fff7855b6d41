"""The benchmark of poison: its archive is one, and the pages that it marks are the ones that are obeyed."""

from __future__ import annotations

import random
from pathlib import Path

from fastwarc.warc import ArchiveIterator

from benchmarks.poison import MARK, POISON, PoisonedExtract, page, poisoned, raw, write_archive


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
