"""Format numbers: the current one and every older one for which there is a step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curate.formats import Format, FormatError
from curate.run import Result
from curate.store import StoreError, json_line, self_digested
from tests.curate.corpus import run_on, small


def _rename(value: dict[str, Any]) -> dict[str, Any]:
    return {"size" if name == "bytes" else name: item for name, item in value.items()}


def _add(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "unit": "byte"}


def _put_back(path: Path, **changes: Any) -> bytes:
    """Make the manifest at `path` one of format 1, with `changes`."""
    value = {name: item for name, item in json.loads(path.read_bytes()).items() if name != "digest"}
    path.unlink()
    path.write_bytes(json_line(self_digested({**value, "format": 1, **changes})))
    return path.read_bytes()


def test_run_over_a_result_of_an_earlier_format_keeps_it(raw: Path, undisturbed: Result, finished: Path) -> None:
    path = finished / undisturbed.name / "manifest.json"
    before = _put_back(path)
    assert run_on(small(raw), finished).digest == undisturbed.digest
    assert path.read_bytes() == before


def test_run_over_another_result_of_an_earlier_format_is_refused(
    raw: Path, undisturbed: Result, finished: Path
) -> None:
    _put_back(finished / undisturbed.name / "manifest.json", content="0" * 64)
    with pytest.raises(StoreError, match="two attempts at one task must give the same bytes"):
        run_on(small(raw), finished)


THIRD = Format(3, "run again", (_rename, _add))


def test_format_lifts_every_older_version_step_by_step() -> None:
    current = {"format": 3, "size": 7, "unit": "byte"}
    assert THIRD.lift({"format": 1, "bytes": 7}, "f") == current
    assert THIRD.lift({"format": 2, "size": 7}, "f") == current
    assert THIRD.lift(current, "f") == current
    assert THIRD.stamp == 3


def test_format_leaves_what_was_stored_as_it_is() -> None:
    stored = {"format": 1, "bytes": 7, "digest": "d"}
    assert THIRD.lift(stored, "f")["digest"] == "d"
    assert stored == {"format": 1, "bytes": 7, "digest": "d"}


@pytest.mark.parametrize("number", [0, 4, None, "3", True, 1.0])
def test_format_of_another_version_is_refused_with_file_versions_and_remedy(number: object) -> None:
    with pytest.raises(FormatError, match=f"^a/b.json has format {number}, .* reads formats 1 to 3: run again$"):
        THIRD.lift({"format": number}, "a/b.json")


def test_format_with_a_prefix_reads_its_own_stamp_only() -> None:
    checkpoint = Format(2, "train again", (_add,), "curate checkpoint ")
    assert checkpoint.stamp == "curate checkpoint 2"
    assert checkpoint.lift({"format": "curate checkpoint 1"}, "f")["unit"] == "byte"
    with pytest.raises(FormatError, match="reads formats curate checkpoint 1 to curate checkpoint 2"):
        checkpoint.lift({"format": 2}, "f")
