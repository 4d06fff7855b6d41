"""An index that a node keeps: the same findings, mapped or built, and no trust in a damaged file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.transforms.contamination_cases import HOST, ITEMS, write_benchmark
from transforms import contamination_index, contamination_stored
from transforms.contamination import Decontaminate
from transforms.contamination_stored import store, stored

ARRAYS = {"numbers": np.arange(6, dtype=np.int64).reshape(3, 2), "none": np.zeros(0, np.bool_)}


def test_stored_arrays_come_back_as_they_were_and_can_be_written_to(tmp_path: Path) -> None:
    store(tmp_path / "a.index", ARRAYS)
    found = stored(tmp_path / "a.index")
    assert found is not None
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].tolist() == array.tolist()
    found["numbers"][:] = 9  # a copy of our own
    assert stored(tmp_path / "a.index")["numbers"].tolist() == ARRAYS["numbers"].tolist()  # type: ignore[index]


@pytest.mark.parametrize("place", [3, contamination_stored.LARGEST_HEAD + 8])
def test_damaged_short_or_missing_file_is_none(tmp_path: Path, place: int) -> None:
    path = tmp_path / "a.index"
    store(path, ARRAYS)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert stored(path) is None
    path.write_bytes(b"")
    assert stored(path) is None
    assert stored(tmp_path / "no.index") is None


def test_folder_keeps_the_last_files_only(tmp_path: Path) -> None:
    for number in range(contamination_stored.MOST_FILES + 3):
        store(tmp_path / f"{number}.index", ARRAYS)
    assert len(list(tmp_path.iterdir())) == contamination_stored.MOST_FILES
    store(tmp_path / "file" / "under" / "x.index", ARRAYS)  # folders are made
    (tmp_path / "plain").write_text("")
    store(tmp_path / "plain" / "x.index", ARRAYS)  # cannot be: nothing happens


def test_stored_index_finds_what_the_built_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(contamination_index, "LEAST_STORED", 1)
    monkeypatch.setattr(contamination_index, "own_folder", lambda: tmp_path)
    transform = Decontaminate(write_benchmark(tmp_path))
    rows = pa.array([HOST + str(item["question"]) + HOST for item in ITEMS], pa.large_string())
    contamination_index.load_index.cache_clear()
    built = transform.findings(rows)
    assert len(list(tmp_path.glob("contamination/*.index"))) == 1
    contamination_index.load_index.cache_clear()
    monkeypatch.setattr(contamination_index, "build_index", None)
    assert transform.findings(rows) == built != {}
    contamination_index.load_index.cache_clear()
