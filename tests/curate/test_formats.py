"""Format numbers: the current one and every older one for which there is a step."""

from __future__ import annotations

from typing import Any

import pytest

from curate.formats import Format, FormatError


def _rename(value: dict[str, Any]) -> dict[str, Any]:
    return {"size" if name == "bytes" else name: item for name, item in value.items()}


def _add(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "unit": "byte"}


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
