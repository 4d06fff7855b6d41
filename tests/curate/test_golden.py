"""What the golden recipes gave when it was written down: content, keys, and under the lock file every byte."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import transforms
from curate.content_digests import content_digest
from curate.datasets import datasets_in
from curate.receipts import read_receipt
from curate.run import Result, open_result, results_in
from curate.store import Store, StoreError
from tests.curate.corpus import ledger, run_on, texts, tree
from tests.golden.make import LOCKED, described
from tests.golden.recipe import FOLDER, small, whole
from tests.transforms.test_contract import GOLDEN as CONTRACT
from tests.transforms.test_contract import MEMBERS
from transforms.outcome import Transform

HELP = (
    "A transform, a reader or a format gives something else than before. If that is meant, raise its version and run "
    "python -m tests.golden.make; if not, it is a bug: an old recipe would give other data under an old name"
)
GOLDEN: dict[str, Any] = json.loads((FOLDER / "digests.json").read_text())


@pytest.fixture(scope="module")
def remade(memory: Path) -> dict[str, Result]:
    return {
        name: run_on(outputs, memory / f"golden-{name}") for name, outputs in (("whole", whole()), ("small", small()))
    }


@pytest.mark.parametrize("name", ["whole", "small"])
def test_golden_recipe_gives_the_content_that_is_written_down(remade: dict[str, Result], name: str) -> None:
    found = described(remade[name], remade[name].folder.parent)
    for field in ("content", "texts", "rows", "ledger"):
        of = {stage: entry[field] for stage, entry in found["stages"].items()}
        assert of == {stage: entry[field] for stage, entry in GOLDEN[name]["stages"].items()}, f"{field}: {HELP}"
    assert found["digest"] == GOLDEN[name]["digest"], HELP


@pytest.mark.parametrize("name", ["whole", "small"])
def test_golden_recipe_gives_the_keys_and_bytes_that_are_written_down_under_the_lock(
    remade: dict[str, Result], name: str
) -> None:
    if {library: version(library) for library in LOCKED} != GOLDEN["versions"]:
        pytest.skip(f"written down under {GOLDEN['versions']}")
    found = described(remade[name], remade[name].folder.parent)
    keys = {stage: entry["key"] for stage, entry in found["stages"].items()}
    assert keys == {stage: entry["key"] for stage, entry in GOLDEN[name]["stages"].items()}, (
        f"keys differ: a run over an old store would do everything again. {HELP}"
    )
    if name == "small":
        assert tree(remade[name].folder.parent) == tree(FOLDER / "store"), HELP
    assert found["files"] == GOLDEN[name]["files"], HELP


def test_store_that_was_published_long_ago_opens_and_is_what_the_recipe_gives(remade: dict[str, Result]) -> None:
    store = Store(FOLDER / "store")
    (folder,) = results_in(store)
    old = open_result(store, folder)
    assert old.digest == remade["small"].digest, HELP
    (dataset,), (again,) = old.outputs.values(), remade["small"].outputs.values()
    assert texts(dataset) == texts(again)
    assert ledger(dataset) == ledger(again)
    assert dataset.samples() == again.samples()
    assert dataset.statistics == again.statistics
    batches = list(dataset.batches())
    assert content_digest(batches, batches[0].schema) == dataset.shards()[0]["content"]


def test_run_into_a_store_that_was_published_long_ago_does_nothing(tmp_path: Path) -> None:
    if {library: version(library) for library in LOCKED} != GOLDEN["versions"]:
        pytest.skip(f"written down under {GOLDEN['versions']}")
    shutil.copytree(FOLDER / "store", tmp_path / "store")
    before = tree(tmp_path / "store")
    assert run_on(small(), tmp_path / "store").digest == GOLDEN["small"]["digest"]
    assert tree(tmp_path / "store") == before, HELP


def test_golden_documents_meet_every_transform(remade: dict[str, Result]) -> None:
    """A transform without a golden digest could change unnoticed: here, or in the contract test of transforms."""

    def named(operation: dict[str, Any]) -> Iterator[str]:
        for step in operation.get("steps", []):
            yield from classes(step["transform"])

    def classes(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "class" in value:
                yield value["class"]
            for item in value.values():
                yield from classes(item)
        elif isinstance(value, list):
            for item in value:
                yield from classes(item)

    here = {name for dataset in remade["whole"].stages for name in named(dataset.manifest["operation"])}
    there = {type(MEMBERS[name].transform).__name__ for name in CONTRACT}
    # these follow a model pinned by its digest, and are tested where that model is
    own_model = {"CutOtherLanguages", "Language", "MainLanguageShare", "ParagraphLanguages"}
    public = {
        name
        for name, value in vars(transforms).items()
        if inspect.isclass(value) and name in transforms.__all__ and value is not Transform
        if hasattr(value, "apply") and hasattr(value, "output_schema")
    }
    assert public - here - there - own_model == set()
    assert len(here) > 6


def test_flipped_byte_in_any_json_of_the_published_store_is_an_error(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "store", tmp_path / "store")
    store = Store(tmp_path / "store")
    for path in sorted((tmp_path / "store").rglob("*.json")):
        content = path.read_bytes()
        path.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
        with pytest.raises(StoreError, match=str(path)):
            open_everything(store)
        path.write_bytes(content)
    open_everything(store)


def open_everything(store: Store) -> None:
    for folder in results_in(store):
        open_result(store, folder)
    for dataset in datasets_in(store):
        _ = dataset.statistics
        for shard in dataset.shards():
            read_receipt(store, shard["key"])
