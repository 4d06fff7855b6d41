"""Receipts and manifests: their own digest, their format, their key."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curate import Outputs
from curate.committing.commit import MadeDataset, commit_dataset
from curate.committing.gathered import held
from curate.datasets import dataset_folder, datasets_in, open_dataset
from curate.receipts import FileEntry, Receipt, publish_receipt, read_manifest, read_receipt, shard_folder
from curate.run import Result
from curate.running.jobs import TaskError
from curate.store import Store, StoreError, json_line, self_digested
from tests.curate.corpus import read_web, run_on, small, tasks, tree
from transforms.schema import documents
from transforms.user_function import EditText

KEY = "0123456789abcdef" * 4
RECEIPT = Receipt(
    KEY,
    "documents",
    {"path": "a.jsonl", "fingerprint": "f"},
    {"part.parquet": FileEntry(10, "d", 2, "c"), "keys.parquet": FileEntry(1, "e")},
    {"steps": {}, "texts": {"count": 0}},
    "q",
)


def test_receipt_read_is_the_receipt_published(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert read_receipt(store, KEY) is None
    publish_receipt(store, RECEIPT)
    publish_receipt(store, RECEIPT)
    assert read_receipt(store, KEY) == RECEIPT
    assert (tmp_path / "shards" / KEY[:16] / "receipt.json").is_file()


@pytest.mark.parametrize(
    "other",
    [
        {"task": "other"},
        {"unit": {"path": "b.jsonl", "fingerprint": "f"}},
        {"files": {}},
        {"statistics": {"steps": {}, "texts": {"count": 1}}},
        {"quarantine": None},
    ],
)
def test_digest_of_a_receipt_sees_every_field(tmp_path: Path, other: dict[str, Any]) -> None:
    changed = Receipt(
        **{name: other.get(name, getattr(RECEIPT, name)) for name in Receipt.__slots__}  # type: ignore[attr-defined]
    )
    assert changed.to_json()["digest"] != RECEIPT.to_json()["digest"]
    publish_receipt(Store(tmp_path), RECEIPT)
    with pytest.raises(StoreError, match="two attempts at one task must give the same bytes"):
        publish_receipt(Store(tmp_path), changed)


def put(tmp_path: Path, value: dict[str, Any]) -> Store:
    path = tmp_path / shard_folder(KEY) / "receipt.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(json_line(self_digested({name: item for name, item in value.items() if name != "digest"})))
    return Store(tmp_path)


def test_receipt_of_another_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    store = put(tmp_path, {**RECEIPT.to_json(), "format": 9})
    with pytest.raises(StoreError, match=r"has format 9, this .* reads formats 1 to \d+: use the version that"):
        read_receipt(store, KEY)


def test_receipt_without_a_format_is_refused(tmp_path: Path) -> None:
    value = RECEIPT.to_json()
    del value["format"]
    with pytest.raises(StoreError, match="has format None"):
        read_receipt(put(tmp_path, value), KEY)


def test_receipt_of_a_shard_whose_path_is_the_same_is_refused(tmp_path: Path) -> None:
    other = KEY[:16] + "0" * 48
    store = put(tmp_path, {**RECEIPT.to_json(), "key": other})
    with pytest.raises(StoreError, match=f"belongs to the shard key {other}, not to {KEY}"):
        read_receipt(store, KEY)


def test_receipt_with_a_changed_number_is_refused(tmp_path: Path) -> None:
    publish_receipt(Store(tmp_path), RECEIPT)
    path = tmp_path / shard_folder(KEY) / "receipt.json"
    path.write_bytes(path.read_bytes().replace(b'"rows":2', b'"rows":3'))
    with pytest.raises(StoreError, match="the file is damaged"):
        read_receipt(Store(tmp_path), KEY)


def test_run_over_a_damaged_receipt_stops_and_names_it(raw: Path, undisturbed: Result, finished: Path) -> None:
    shard = undisturbed.stages[0].shards()[0]["key"]
    (finished / undisturbed.stages[0].folder / "manifest.json").unlink()
    path = finished / shard_folder(shard) / "receipt.json"
    path.write_bytes(path.read_bytes().replace(b'"format":3', b'"format":7'))
    with pytest.raises(StoreError, match=str(path)):
        run_on(small(raw), finished)


def test_damaged_part_stops_whoever_reads_it_and_comes_back_when_its_folder_is_removed(
    raw: Path, tmp_path: Path
) -> None:
    def outputs(reason: str) -> Outputs:
        return Outputs(read_web(raw).keep("web").apply(EditText(str.title, reason=reason, version=1), name="titles"))

    run_on(outputs("a"), tmp_path)
    before = tree(tmp_path)
    web = next(dataset for dataset in datasets_in(Store(tmp_path)) if dataset.name == "web")
    folder = tmp_path / shard_folder(web.shards()[0]["key"])
    content = (folder / "part.parquet").read_bytes()
    for damaged in (content[:100] + bytes([content[100] ^ 1]) + content[101:], content[:-1], None):
        (folder / "part.parquet").unlink()
        if damaged is not None:
            (folder / "part.parquet").write_bytes(damaged)
        with pytest.raises(TaskError, match=f"part.parquet is missing or damaged: remove {folder} and run the recipe"):
            run_on(outputs("b"), tmp_path)
    shutil.rmtree(folder)
    run_on(outputs("b"), tmp_path)
    assert tasks(tmp_path)["web"] == ["x.jsonl"]
    assert {name: digest for name, digest in tree(tmp_path).items() if name in before} == before


# --- manifests -------------------------------------------------------------------------------------------------------


def made(store: Store, receipts: Sequence[Receipt] = (RECEIPT,), **changes: Any) -> MadeDataset:
    fields: dict[str, Any] = {
        "name": "a name/with odd: characters",
        "key": KEY,
        "operation": {"operation": "documents"},
        "inputs": (),
        "schema": documents(),
        "receipts": held(store, receipts),
    }
    return MadeDataset(**{**fields, **changes})


def test_dataset_opened_is_the_dataset_committed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    dataset = commit_dataset(store, made(store))
    assert open_dataset(store, dataset.name, KEY) == dataset
    assert [found.folder for found in datasets_in(store)] == [f"a-name-with-odd--characters-{KEY[:16]}"]
    assert (dataset.rows, dataset.manifest["shards"], dataset.manifest["quarantine"] is None) == (2, 1, False)
    assert dataset.shards()[0]["receipt"] == RECEIPT.to_json()["digest"]
    assert dataset.statistics["texts"] == {"count": 0}


def test_manifest_is_published_last(tmp_path: Path) -> None:
    passed: list[str] = []
    store = Store(tmp_path, passed.append)
    commit_dataset(store, made(store))
    names = [entry.rpartition("/")[2] for entry in passed if entry.endswith(":spooled")]
    assert sorted(names[:-1]) == ["samples.parquet:spooled", "shards.parquet:spooled", "statistics.json:spooled"]
    assert names[-1] == "manifest.json:spooled"


def test_content_of_a_dataset_sees_the_content_of_its_parts_and_their_order_only(tmp_path: Path) -> None:
    def content(number: int, *parts: str, task: str = "documents") -> str:
        receipts = [
            Receipt(f"{n}{KEY[1:]}", task, {}, {"part.parquet": FileEntry(n, f"file digest {n}", 1, part)})
            for n, part in enumerate(parts)
        ]
        store = Store(tmp_path / str(number))
        return commit_dataset(store, made(store, receipts)).content

    assert content(1, "x", "y") == content(2, "x", "y", task="other")
    assert len({content(3, "x", "y"), content(4, "y", "x"), content(5, "x"), content(6)}) == 4


@pytest.mark.parametrize("change", [{"format": 9}, {"kind": "recipe", "format": None}])
def test_manifest_of_another_format_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    store = Store(tmp_path)
    dataset = commit_dataset(store, made(store))
    path = tmp_path / dataset.folder / "manifest.json"
    value = {name: item for name, item in json.loads(path.read_bytes()).items() if name != "digest"}
    path.write_bytes(json_line(self_digested({**value, **change})))
    with pytest.raises(StoreError, match="this version of curate reads formats 1 to"):
        read_manifest(store, dataset.folder)


def test_names_of_folders_are_safe_and_keep_what_they_can() -> None:
    assert dataset_folder("read books_1.2", KEY) == f"read-books_1.2-{KEY[:16]}"
    assert dataset_folder("../../etc/passwd", KEY) == f"..-..-etc-passwd-{KEY[:16]}"
    assert "/" not in dataset_folder("ä/\\\0" * 50, KEY) and len(dataset_folder("x" * 500, KEY)) == 97
