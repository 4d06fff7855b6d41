"""Which library encodes a cache: nothing depends on it but the record of it, and a difference ends its use."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curate.caches import CacheError, TokenCache, Tokenization, backend
from curate.caches.backend import CHOICES, FALL_BACK, NEVER, STOP, Backend, choose_backend
from curate.configuration import ConfigurationError
from curate.digests import digest_json
from curate.recipes.cells import tokenize
from curate.recipes.stages import without_inputs
from curate.running.engine import Engine
from curate.running.jobs import TaskError
from curate.running.journal import Journal
from curate.running.runners import LocalRunner
from curate.store import Store
from tests.curate.token_corpus import END, dataset_of, described, lines, write_tokenizer
from transforms.fast_tokens import FastEncoder, backend_name
from transforms.token_file import read_tokenizer
from transforms.tokens import Encoded, Tokenizer

pytest.importorskip("gigatoken", reason="the extra fast is not installed")

DOCUMENTS = lines(30)


@pytest.fixture(scope="module")
def dataset(memory: Path) -> Any:
    return dataset_of(memory / "backend", DOCUMENTS, files=2)


@pytest.fixture(scope="module")
def tokenizer(memory: Path) -> Tokenizer:
    return Tokenizer(write_tokenizer(memory), eos=END)


def built(dataset: Any, tokenizer: Tokenizer, place: Path, fast: str) -> tuple[TokenCache, dict[str, Any], list[Any]]:
    """Tokenize in a copy of the store; return the cache, what encoded it, and receipts of the tasks that encoded."""
    store = Store(Path(shutil.copytree(dataset.store.root, place)))
    log = Journal(store)
    try:
        engine = Engine(store, LocalRunner(), log)
        copy = type(dataset)(store, dataset.folder, dataset.manifest)
        work = Tokenization(copy, tokenizer, (), digest_json("backend"), engine, fast=fast)
        receipts, inner, record = work.run()
    finally:
        log.close()
    (receipt,) = receipts
    tasks = [row for rows in inner for row in rows]
    return TokenCache.open(store.path(receipt.unit["folder"]), tokenizer), record, tasks


def test_backend_leaves_no_trace_in_a_cache_and_is_recorded(dataset: Any, tokenizer: Tokenizer, tmp_path: Path) -> None:
    plain, nothing, _ = built(dataset, tokenizer, tmp_path / "plain", NEVER)
    fast, record, _ = built(dataset, tokenizer, tmp_path / "fast", FALL_BACK)
    assert (plain.store.root / "cache.json").read_bytes() == (fast.store.root / "cache.json").read_bytes()
    assert nothing == {"asked": NEVER, "used": "tokenizers", "why": "", "compared": {}}
    assert record.pop("compared")["documents"] >= 2  # the first of each shard at least
    assert record == {"asked": FALL_BACK, "used": backend_name(), "why": ""}


def wrong_in_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the backend give other ids for one document of the second shard, the first there."""
    right, seen = FastEncoder.encode_column, []

    def encode(self: FastEncoder, texts: pa.Array) -> Encoded:
        encoded = right(self, texts)
        seen.append(texts)
        if len(seen) == 2:
            encoded.ids[0] ^= 1
        return encoded

    monkeypatch.setattr(FastEncoder, "encode_column", encode)


def test_difference_in_one_shard_encodes_all_again_by_the_reference(
    dataset: Any, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, *_ = built(dataset, tokenizer, tmp_path / "plain", NEVER)
    choose_backend(FALL_BACK, tokenizer)  # tried out before it goes wrong
    wrong_in_sample(monkeypatch)
    cache, record, tasks = built(dataset, tokenizer, tmp_path / "fast", FALL_BACK)
    assert (plain.store.root / "cache.json").read_bytes() == (cache.store.root / "cache.json").read_bytes()
    assert record["used"] == "tokenizers" and record["compared"]["differing"] == 1
    assert record["why"] == f"{backend_name()} gave 1 of the compared documents other ids"
    assert [row.unit for row in tasks].count({"unit": 1}) >= 2  # what differed stays on record


def test_difference_stops_the_run_where_that_is_asked_for(
    dataset: Any, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_backend(STOP, tokenizer)
    wrong_in_sample(monkeypatch)
    with pytest.raises(TaskError, match=r'gives 1 of the compared documents of shard .* fast="never"'):
        built(dataset, tokenizer, tmp_path / "fast", STOP)
    assert not (tmp_path / "fast" / "caches").exists()


def test_backend_that_is_missing_or_refuses_is_said_or_stops(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_loaded", lambda tokenizer: FastEncoder(tokenizer.encoder()))
    monkeypatch.setattr("transforms.fast_tokens.backend_name", lambda: None)
    found = choose_backend(FALL_BACK, tokenizer)
    assert found.name is None and "pip install 'curate[fast]'" in found.why
    with pytest.raises(CacheError, match=r"not installed: pip install .*tokenize with fast="):
        choose_backend(STOP, tokenizer)
    assert choose_backend(NEVER, tokenizer) == Backend()


def test_worker_with_another_backend_than_the_driver_is_refused(tokenizer: Tokenizer) -> None:
    plan = type("Plan", (), {"tokenizer": tokenizer})()
    with pytest.raises(CacheError, match=r"this worker has gigatoken .*, the driver gigatoken 0\.0: install it"):
        backend.fast_encoder(plan, Backend(FALL_BACK, "gigatoken 0.0"))
    assert backend.fast_encoder(plan, Backend()) is None


def test_choice_is_in_no_key_and_checked(tmp_path: Path, tokenizer: Tokenizer) -> None:
    texts = described(tmp_path)
    assert len({digest_json(without_inputs(tokenize(texts, tokenizer, fast=fast))) for fast in CHOICES}) == 1
    with pytest.raises(ConfigurationError, match=r"fast='sometimes': one of 'fall back', 'stop', 'never'"):
        choose_backend("sometimes", tokenizer)


def test_file_names_its_added_tokens() -> None:
    from tests.curate.token_corpus import tokenizer_bytes

    assert read_tokenizer(tokenizer_bytes(), ()).added[0] == END
