"""The benchmark of readers: its checks pass, and tell a lost page."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import readers

pytestmark = pytest.mark.skipif(not readers.WARCS.is_dir(), reason="../shared/data is not there")


def test_archives_of_others_are_covered_and_a_lost_page_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [readers.response(number, f"http://e.org/{number}", b"<p>page %d" % number) for number in range(12)]
    archive = readers._archive(tmp_path, "warc", "gz", pages)
    assert all(check[2] for check in readers.damage_table().values())
    assert all(check[2] for check in readers.html_checks(tmp_path, 12, {}).values())
    assert not all(check[2] for check in readers.html_checks(tmp_path, 13, {}).values())
    assert readers.part_checks([archive])["files whose parts give the ids of the whole"] == [1, "= 1", True]
    assert "original-wrong-header" in capsys.readouterr().out
