"""Compaction, `gc` and `where` on an object store: as on a local folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curate import Outputs, deduplicate, read_jsonl
from curate.run import Result, run
from curate.store import Store
from curate.upkeep.collecting import collect, results_of
from curate.upkeep.finding import Place, Question, find
from curate.upkeep.leftovers import INNER, JOURNALS, leftovers
from curate.upkeep.verify import verify
from tests.curate.corpus import write_lines
from tests.storage.servers import credentials, moto, store_at
from transforms import WithdrawList


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with credentials(), moto() as found:
        yield found


def _recipe(folder: Path) -> Outputs:
    notes = read_jsonl(folder / "in", source="notes", columns={"url": "url"})
    return Outputs(unique=deduplicate(notes.apply(WithdrawList(folder / "list.jsonl"), name="notes")))


def _run(folder: Path, store: Store | Path) -> Result:
    return run(_recipe(folder), store, name="notes", runner="local")


def _texts(store: Store) -> list[str]:
    found = find(store, Question("text", "number 3 of"))
    return sorted(f"{place.kind} {place.dataset.name}" for place in found if isinstance(place, Place))


@pytest.mark.parametrize("files", [1, 3])  # a shard that is linked, shards that are joined
def test_take_down_on_s3_goes_as_on_a_local_folder(endpoint: str, tmp_path: Path, files: int) -> None:
    for number in range(files):
        lines = [
            {"url": f"https://a.example/{number}/{n}", "text": f"This is number {n} of {number}."} for n in range(5)
        ]
        write_lines(tmp_path / "in" / f"{number}.jsonl", lines)
    (tmp_path / "list.jsonl").write_text("", "utf-8")
    stores = [Store(tmp_path / "store"), store_at(endpoint, tmp_path / "node")]
    first = [_run(tmp_path, store) for store in stores]
    assert first[0].digest == first[1].digest
    assert _texts(stores[0]) == _texts(stores[1])
    (tmp_path / "list.jsonl").write_text(
        "".join(f'{{"url": "http://a.example/{n}/3", "reason": "r", "date": "2026-11-30"}}\n' for n in range(files)),
        "utf-8",
    )
    for store in stores:
        (before,) = results_of(store)
        result = _run(tmp_path, store)
        collect(store, leftovers(store, [result.name], (INNER, JOURNALS)))
        assert before not in results_of(store)
        assert verify(store).problems == []
        assert _texts(store) == []
    left = [
        {entry.name: entry.size for entry in store.entries() if not entry.name.startswith("runs/")} for store in stores
    ]
    assert left[0] == left[1]
