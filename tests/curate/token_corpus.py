"""What the tests of token caches share: documents with cells, a small tokenizer, and one way of building caches."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from curate import Column, Dataset, Outputs, read_jsonl
from curate.caches import TokenCache, Tokenization
from curate.caches.layout import LAYOUT, Layout
from curate.committing.gathered import ReceiptRow
from curate.digests import digest_json, text_digest
from curate.running.engine import Engine
from curate.running.journal import Journal
from curate.running.runners import LocalRunner, Runner
from curate.store import Store
from tests.curate.corpus import Line, run_on, sentence, write_lines
from transforms.token_order import order_of
from transforms.token_training import train_bpe
from transforms.tokens import Tokenizer

END, BEGIN = "<|end|>", "<|begin|>"

SMALL = Layout(
    inner_tokens=64, shard_tokens=256, block_tokens=128, inner_documents=4, shard_documents=8, block_documents=8
)
"""A layout that cuts some thousand tokens into several shards."""


def lines(count: int = 60) -> list[Line]:
    """Return documents of two topics and two levels, some nulls, equal texts, empty texts, and special text."""
    made: list[Line] = []
    for n in range(count):
        text = sentence(n, words=3 + n % 17)
        if n % 11 == 0:
            text = f"{END}{text}{BEGIN} und {END}"
        if n % 13 == 5:
            text = ""
        if n % 13 == 7:
            text = "The same text as others have."
        topic = None if n % 10 == 9 else ("news" if n % 3 else "law/old")
        made.append({"key": f"d{n}", "text": text, "topic": topic, "level": n % 2, "sure": n % 5 == 0})
    return made


@cache
def tokenizer_bytes() -> bytes:
    """Return a small byte-level BPE."""
    return train_bpe([line["text"] for line in lines()], 450, [END, BEGIN])


def write_tokenizer(folder: Path) -> Path:
    """Write the small tokenizer into `folder` and return its path."""
    path = folder / "small.tokenizer.json"
    path.write_bytes(tokenizer_bytes())
    return path


def described(root: Path) -> Dataset:
    """Return the dataset of the files below `root`."""
    columns = {
        "key": "key",
        "topic": "topic",
        "level": Column("level", "int64"),
        "sure": Column("sure", "bool"),
    }
    return read_jsonl(root, source="notes", columns=columns)


def dataset_of(folder: Path, documents: Sequence[Line], files: int = 1, seed: int | None = None) -> Any:
    """Return the finished dataset of `documents`, shuffled by `seed`, cut into `files` files, in a store."""
    shuffled = list(documents)
    if seed is not None:
        random.Random(seed).shuffle(shuffled)
    for number in range(files):
        write_lines(folder / "raw" / f"f{number}.jsonl", shuffled[number::files])
    return run_on(Outputs(texts=described(folder / "raw")), folder / "store").outputs["texts"]


@dataclass(frozen=True)
class Built:
    """Caches that were built, and their receipts."""

    store: Store
    caches: dict[str, TokenCache]
    receipts: list[ReceiptRow]
    inner: list[ReceiptRow]


def build(
    dataset: Any,
    tokenizer: Tokenizer,
    by: tuple[str, ...] = (),
    layout: Layout = LAYOUT,
    runner: Runner | None = None,
    failpoint: Callable[[str], None] | None = None,
) -> Built:
    """Tokenize `dataset` in its own store."""
    store = Store(dataset.store.root, failpoint)
    log = Journal(store)
    try:
        engine = Engine(store, runner or LocalRunner(), log)
        key = digest_json({"dataset": dataset.key, "by": list(by), "tokenizer": tokenizer.digest})
        receipts, inner, _ = Tokenization(dataset, tokenizer, by, key, engine, layout).run()
    finally:
        log.close()
    opened = {str(r.unit["cell"]): TokenCache.open(store.path(r.unit["folder"]), tokenizer) for r in receipts}
    return Built(store, opened, list(receipts), [row for rows in inner for row in rows])


def by_definition(documents: Sequence[Line], tokenizer: Tokenizer) -> list[list[int]]:
    """Return the tokens of each document in the order of a cache, the plain way."""
    encoder = tokenizer.encoder()
    ordered = sorted((line["text"] for line in documents), key=lambda text: order_of(text_digest(text)))
    return [encoder.encode(text).tolist() for text in ordered]


def edit_description(folder: Path, **changes: Any) -> None:
    """Write `cache.json` again with other fields and the digest that fits."""
    from curate.store import json_line, self_digested

    value = json.loads((folder / "cache.json").read_bytes())
    del value["digest"]
    (folder / "cache.json").write_bytes(json_line(self_digested({**value, **changes})))
