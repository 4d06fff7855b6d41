"""Opening trained tokenizers and caches: what was committed, or an error that says what is wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from curate.caches import CacheError
from curate.digests import digest_file, digest_json
from curate.products import Caches, TokenizerFile, open_product
from curate.receipts import read_manifest
from curate.run import Result, open_result
from curate.store import Store, StoreError
from tests.curate.corpus import texts
from tests.road.corpus import run_road, write_raw


@pytest.fixture(scope="module")
def road(memory: Path) -> Result:
    """The result of the road; nobody writes to its store."""
    return run_road(write_raw(memory / "produced"), memory / "produced store")


@pytest.fixture
def store(road: Result, tmp_path: Path) -> Store:
    """A copy of its store, to damage."""
    shutil.copytree(road.folder.parent, tmp_path / "store")
    return Store(tmp_path / "store")


def tokenizer_of(store: Store) -> TokenizerFile:
    folder = next(store.root.glob("train-tokenizer-*")).name
    product = open_product(store, "train tokenizer", str(read_manifest(store, folder)["key"]))
    assert isinstance(product, TokenizerFile)
    return product


def test_trained_tokenizer_opens_with_its_file_and_card(road: Result) -> None:
    found = tokenizer_of(Store(road.folder.parent))
    assert (found.name, found.content) == ("train tokenizer", digest_file(found.path))
    loaded = found.tokenizer(None, "<|endoftext|>")
    assert loaded.digest == found.content
    text = texts(road.outputs["train"])[0]
    assert loaded.encoder().decode(loaded.encoder().encode(text)) == f"{text}<|endoftext|>"
    assert f'"documents":{road.outputs["train"].rows}' in json.dumps(found.manifest, separators=(",", ":"))


def test_caches_open_by_cell_and_hold_every_document_once(road: Result) -> None:
    caches = road.caches["training"]
    opened = caches.open()
    assert tuple(opened) == caches.cells == ("letters", "notes", "pages")
    assert sum(len(cache) for cache in opened.values()) == road.outputs["train"].rows
    assert caches.content == digest_json({cell: cache.digest for cell, cache in opened.items()})
    again = open_product(caches.store, caches.name, caches.key)
    assert isinstance(again, Caches) and again.manifest == caches.manifest
    assert "in 3 caches" in str(caches)


def test_product_asked_for_under_another_key_or_name_is_refused(store: Store) -> None:
    found = tokenizer_of(store)
    with pytest.raises(StoreError, match="train-tokenizer-0000000000000000"):
        open_product(store, found.name, "0" * 64)
    shutil.copytree(store.root / found.folder, store.root / "train-tokenizer-0000000000000000")
    with pytest.raises(StoreError, match=f"is a tokenizer with key {found.key}, asked for was 0000"):
        open_product(store, found.name, "0" * 64)


def test_dataset_asked_for_as_a_product_is_refused(store: Store, road: Result) -> None:
    train = road.outputs["train"]
    with pytest.raises(StoreError, match="is a dataset"):
        open_product(store, "train", train.key)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def format_of_tomorrow(path: Path) -> None:
    path.write_bytes(re.sub(rb'"format":\d+', b'"format":9', path.read_bytes()))


@pytest.mark.parametrize("damage", [cut, flip, format_of_tomorrow, Path.unlink])
def test_manifest_damaged_or_of_another_format_is_an_error_that_names_it(
    store: Store, road: Result, damage: Callable[[Path], None]
) -> None:
    caches = road.caches["training"]
    damage(store.root / caches.folder / "manifest.json")
    with pytest.raises(StoreError, match=f"{caches.folder}.manifest"):
        open_product(store, caches.name, caches.key)


def test_cache_of_another_cell_in_its_place_is_refused(store: Store, road: Result) -> None:
    caches = open_result(store, road.folder.name).caches["training"]
    shutil.rmtree(caches.place("notes").root)
    shutil.copytree(caches.place("pages").root, caches.place("notes").root)
    with pytest.raises(CacheError, match="digest"):
        caches.open()


@pytest.mark.parametrize("name", ["tokens/c/0", "cache.json"])
def test_cache_with_a_file_cut_short_is_refused_by_name(store: Store, road: Result, name: str) -> None:
    caches = open_result(store, road.folder.name).caches["training"]
    cut(caches.place("pages").root / name)
    with pytest.raises(CacheError, match=name.partition("/")[0]):
        caches.open()
