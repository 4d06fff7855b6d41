"""Receipts merged in a tree: what comes out is the same as merging all at once, and damage and conflicts are errors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from curate import Outputs, deduplicate, read_jsonl
from curate.accounting.ledger import SAMPLES
from curate.accounting.samples import Samples
from curate.accounting.statistics import distinct, least, merge, merge_all, text_sum
from curate.committing import gathering
from curate.committing.gathered import Receipts, held
from curate.committing.gathering import gather
from curate.receipts import LISTED_FROM, FileEntry, Receipt, finished, publish_receipt, shard_folder
from curate.running.jobs import Item, Job, TaskError
from curate.running.runners import run_item
from curate.store import Store, StoreError
from curate.upkeep.collecting import results_of
from curate.upkeep.leftovers import leftovers
from curate.upkeep.verify import verify
from curate.writer import write_parquet
from tests.curate.corpus import journal, run_on, sentence, tree, write_lines


class Here:
    """Makes items in this process and counts them."""

    def __init__(self, store: Store) -> None:
        self.store, self.made = store, 0

    def make(self, job: Job, items: Sequence[Item], again: frozenset[str] = frozenset()) -> frozenset[str]:
        there = finished(self.store, [item.key for item in items])
        missing = [item for item in items if item.key in again or item.key not in there]
        for item in missing:
            run_item(job, item)
        self.made += len(missing)
        return frozenset(item.key for item in missing)


def sample(number: int) -> dict[str, Any]:
    digest = number.to_bytes(16, "big")
    origin = {"uri": "a", "place": "row", "offset": number, "length": 1, "part": 0}
    fields = {"kind": "kept", "transform": "", "reason": "", "text_digest": digest, "id": digest, "source": "s"}
    return {**fields, "origin": origin, "characters": 1, "excerpt": str(number)}


def receipts_in(store: Store, count: int) -> list[Receipt]:
    """Publish `count` receipts with every kind of statistics, some with samples, and return them."""
    draw = random.Random(count)
    made = []
    for number in range(count):
        key = f"{number:064x}"[::-1]
        files = {"part.parquet": FileEntry(draw.randrange(100), f"d{number}", number, f"c{number}")}
        if number % 3 == 0:
            samples = Samples()
            samples.offer(sample(draw.randrange(1000)))
            with store.spool() as path:
                written = write_parquet(path, [samples.batch()], SAMPLES)
                size = path.stat().st_size
                digest = store.publish(path, f"{shard_folder(key)}/samples.parquet")
            files["samples.parquet"] = FileEntry(size, digest, written.rows, written.content)
        hosts = {f"h{draw.randrange(40)}": {"documents": 1} for _ in range(5)}
        statistics = {
            "steps": {"00": {"name": "step", "sources": {"s": {"documents_in": draw.randrange(9)}}}},
            "hosts": {"most": least(hosts, 7), "distinct": distinct(name.encode() for name in hosts)},
            "texts": {"count": 1, "multiset": text_sum([number.to_bytes(16, "big")])},
        }
        made.append(Receipt(key, "documents", {"path": f"{number}"}, files, statistics, "q" if number == 1 else None))
        publish_receipt(store, made[-1])
    return made


@pytest.mark.parametrize("count", [1, 3, 4, 10, 21])
def test_tree_of_receipts_says_what_they_say_at_once(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    made = receipts_in(store, count)
    plain = held(store, made)
    monkeypatch.setattr(gathering, "FAN_IN", 3)
    here = Here(store)
    found = gather(here, [receipt.key for receipt in made])
    assert list(found) == list(plain) and len(found) == count and found.bytes == plain.bytes
    assert found.statistics() == plain.statistics()
    assert found.samples() == plain.samples()
    levels = {1: 0, 3: 0, 4: 3, 10: 4 + 2 + 1, 21: 7 + 3 + 1}
    assert here.made == len(found.nodes) == levels[count]
    gather(here, [receipt.key for receipt in made])
    assert here.made == levels[count]  # reused


def test_merging_part_by_part_equals_merging_one_after_the_other() -> None:
    draw = random.Random(1)
    for count in range(20):
        parts = [{"a": {str(draw.randrange(3)): 1}, "hosts": least({str(n): {"n": 1}}, 5)} for n in range(count)]
        plain: dict[str, Any] = parts[0] if parts else {}
        for part in parts[1:]:
            plain = merge(plain, part)
        assert merge_all(iter(parts)) == plain


def test_shard_that_came_back_otherwise_is_an_error_not_an_old_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    monkeypatch.setattr(gathering, "FAN_IN", 2)
    made = receipts_in(store, 5)
    keys = [receipt.key for receipt in made]
    gather(Here(store), keys)
    store.remove(f"{shard_folder(keys[1])}/receipt.json")
    publish_receipt(store, replace(made[1], quarantine=None))
    with pytest.raises(TaskError, match="two attempts at one task must give the same bytes"):
        gather(Here(store), keys, frozenset({keys[1]}))


@pytest.mark.parametrize("fan_in", [2, 8])
def test_receipt_that_is_missing_when_all_are_made_is_an_error(
    fan_in: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    monkeypatch.setattr(gathering, "FAN_IN", fan_in)
    made = receipts_in(store, 5)
    store.remove(f"{shard_folder(made[3].key)}/receipt.json")
    with pytest.raises((StoreError, TaskError), match=f"{made[3].key[:16]}: the task finished without a receipt"):
        gather(Here(store), [receipt.key for receipt in made])


def outputs(root: Path) -> Outputs:
    return Outputs(deduplicate(read_jsonl(root, source="s")))


def test_dataset_of_many_shards_has_the_files_of_one_gathered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(11):
        write_lines(
            tmp_path / "in" / f"{number}.jsonl", [{"text": sentence(number % 9)}, {"text": sentence(50 + number)}]
        )
    plain = run_on(outputs(tmp_path / "in"), tmp_path / "plain")
    monkeypatch.setattr(gathering, "FAN_IN", 3)
    result = run_on(outputs(tmp_path / "in"), tmp_path / "tree")
    assert result.digest == plain.digest
    one, other = tree(tmp_path / "plain"), tree(tmp_path / "tree")
    folders = {dataset.folder for dataset in plain.stages}
    promised = {name for name in one if name.split("/")[0] in folders and not name.endswith("manifest.json")}
    assert len(promised) == 3 * len(folders)
    assert {name: one[name] for name in promised} == {name: other[name] for name in promised}
    nodes = [event for event in journal(tmp_path / "tree") if event.get("job") == "gather receipts"]
    assert len([event for event in nodes if event["event"] == "task"]) >= 7
    assert verify(tmp_path / "tree").problems == []
    run_on(outputs(tmp_path / "in"), tmp_path / "tree")
    assert [event for event in journal(tmp_path / "tree") if event["event"] == "task"] == []
    store = Store(tmp_path / "tree")
    kept = list(results_of(store))
    assert [found for found in leftovers(store, kept) if "spool" not in found.name] == []  # gc keeps the nodes
    assert {name.split("/")[1] for name in other if name.endswith("merged.json")} <= {
        found.name.split("/")[1] for found in leftovers(store, kept, ["inner"])
    }


def test_node_of_a_tree_that_is_damaged_is_found_by_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        write_lines(tmp_path / "in" / f"{number}.jsonl", [{"text": sentence(number)}])
    monkeypatch.setattr(gathering, "FAN_IN", 3)
    run_on(outputs(tmp_path / "in"), tmp_path / "store")
    path = next((tmp_path / "store" / "shards").glob("*/merged.json"))
    path.write_bytes(path.read_bytes().replace(b'"count":', b'"Count":'))
    (problem,) = verify(tmp_path / "store").problems
    assert path.parent.name in problem and "merged.json" in problem


@dataclass
class Remote:
    """A store elsewhere that holds these names and counts what it is asked."""

    held: list[str]
    is_remote: bool = True
    listed: int = 0
    asked: int = 0

    def names(self, folder: str) -> list[str]:
        self.listed += 1
        return [name for name in self.held if name.startswith(f"{folder}/")]

    def exists(self, name: str) -> bool:
        self.asked += 1
        return name in self.held


def test_many_shards_of_a_remote_store_are_looked_up_by_one_listing() -> None:
    keys = [f"{number:064x}"[::-1] for number in range(2 * LISTED_FROM)]
    store: Any = Remote(
        [f"{shard_folder(key)}/receipt.json" for key in keys[::2]] + [f"{shard_folder(keys[1])}/part.parquet"]
    )
    assert finished(store, keys) == set(keys[::2]) and (store.listed, store.asked) == (1, 0)
    assert finished(store, keys[:9]) == set(keys[:9:2]) and (store.listed, store.asked) == (1, 9)


def test_finished_names_the_shards_that_have_a_receipt(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = receipts_in(store, 3)
    assert finished(store, [*(receipt.key for receipt in made[:2]), "f" * 64]) == {made[0].key, made[1].key}
    assert isinstance(held(store, made), Receipts)


class StopError(RuntimeError):
    """Raised at a failpoint."""


def test_gathering_stopped_at_any_point_of_any_write_goes_on_to_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "FAN_IN", 3)
    passed: list[str] = []
    keys = [receipt.key for receipt in receipts_in(Store(tmp_path / "whole"), 7)]
    gather(Here(Store(tmp_path / "whole", passed.append)), keys)
    expected = tree(tmp_path / "whole")
    assert len(set(passed)) == len(passed) >= 3 * (3 * 3 + 1)
    for number, point in enumerate(passed):
        root = tmp_path / f"stopped{number}"
        receipts_in(Store(root), 7)

        def stop(reached: str, point: str = point) -> None:
            if reached == point:
                raise StopError(point)

        with pytest.raises((TaskError, StopError)):
            gather(Here(Store(root, stop)), keys)
        gather(Here(Store(root)), keys)
        assert tree(root) == expected, point
