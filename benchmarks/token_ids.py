"""Ids of the fast backend beside those of `tokenizers`, document by document, and texts that come back from ids.

Run `python -m benchmarks.token_ids [--size small|full] [--tokenizer NAME]`, for all tokenizers of
../shared/data/tokenizers; where that is absent it says so and ends. Texts: books, code, LaTeX, twelve languages
(corpora/multidomain), the declaration of human rights in 388 texts, and garbage made here: bytes decoded with
replacement, code points drawn from all of Unicode, texts cut and shuffled, runs. Every document is encoded by both;
ids, and the text decoded from them, must be equal. MB are 10^6 bytes of UTF-8. The last line is JSON; the exit status
is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.minhash import CORPUS
from benchmarks.tokens import TOKENIZERS
from transforms.fast_tokens import FastEncoder
from transforms.tokens import Tokenizer

BYTES: Final = {"small": 4_000_000, "full": 105_000_000}
GARBAGE_SHARE: Final = 4
"""One byte of so many is garbage."""

BATCH_BYTES: Final = 4 << 20
PACKAGES: Final = ("tokenizers", "gigatoken")
PIECES: Final = ("<|endoftext|>", "'s", " ", "\n", "\u0301", "ab", "9", "漢", "\u200d", "\t", "ſ", "İ")
RIGHTS: Final = CORPUS.parents[1] / "lid" / "udhr2.parquet"


def garbage(size: int) -> Iterator[str]:
    """Yield `size` bytes of garbage, the same every time."""
    draw, made, kind = np.random.default_rng(0), 0, 0
    while made < size:
        length = int(draw.integers(1, 40_000))
        if kind % 4 == 0:
            text = draw.integers(0, 256, length, np.uint8).tobytes().decode(errors="replace")
        elif kind % 4 == 1:
            points = draw.integers(0, 0x110000, length // 3)
            text = "".join(map(chr, points[(points < 0xD800) | (points >= 0xE000)]))
        elif kind % 4 == 2:
            text = "".join(chr(draw.integers(32, 0x3000)) * int(draw.integers(1, 400)) for _ in range(length // 400))
        else:
            pieces = draw.choice(
                ["<|endoftext|>", "'s", " ", "\n", "\u0301", "ab", "9", "漢", "\u200d", "\t", "ſ", "İ"], length
            )
            text = "".join(pieces)
        kind, made = kind + 1, made + len(text.encode())
        yield text


def texts(size: int) -> list[str]:
    """Return texts of about `size` bytes, garbage among them."""
    real = [*pq.read_table(CORPUS, columns=["text"]).column("text").to_pylist()]
    real += pq.read_table(RIGHTS).column("text").to_pylist()
    made, found = 0, []
    for place in np.random.default_rng(1).permutation(len(real)).tolist():
        if made > size * (GARBAGE_SHARE - 1) // GARBAGE_SHARE:
            break
        made += len(real[place].encode())
        found.append(real[place])
    return [*found, *garbage(size - made)]


def batches(documents: list[str]) -> Iterator[list[str]]:
    """Yield the documents, some MB at a time."""
    batch, size = [], 0
    for text in documents:
        batch.append(text)
        size += len(text)
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def compare(name: str, documents: list[str]) -> tuple[int, int, int, float]:
    """Return documents with other ids, other texts, characters left to the reference, and the rate in MB/s."""
    tokenizer = Tokenizer(TOKENIZERS / f"{name}.tokenizer.json")
    reference = tokenizer.encoder()
    fast = FastEncoder(reference)
    fast.try_out()
    wrong = lost = 0
    seconds = 0.0
    for batch in batches(documents):
        began = time.process_time()
        found = fast.encode_column(pa.array(batch, pa.large_string()))
        seconds += time.process_time() - began
        expected = reference.encode_batch(batch)
        for row, text in enumerate(batch):
            ids = found.document(row)
            wrong += not np.array_equal(ids, expected.document(row))
            lost += reference.decode(ids) != text
    return wrong, lost, len(fast.left_out or ()), sum(len(text.encode()) for text in documents) / 1e6 / seconds


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(BYTES), default="full", help="how much text (default: %(default)s)")
    parser.add_argument("--tokenizer", default="*", metavar="NAME", help="only this one")
    options = parser.parse_args(arguments)
    if not TOKENIZERS.is_dir():
        print(f"{TOKENIZERS} is not there: nothing to compare")
        return 0
    documents = texts(BYTES[options.size])
    size = sum(len(text.encode()) for text in documents) / 1e6
    print(f"{len(documents):,} documents, {size:.1f} MB")
    checks: dict[str, list[Any]] = {}
    rates = {}
    for path in sorted(TOKENIZERS.glob(f"{options.tokenizer}.tokenizer.json")):
        name = path.name.removesuffix(".tokenizer.json")
        wrong, lost, left, rates[name] = compare(name, documents)
        print(
            f"{name:15} {wrong} with other ids, {lost} other texts, {left} characters left out, {rates[name]:.0f} MB/s"
        )
        checks[f"{name}: documents with other ids"] = [wrong, "= 0", wrong == 0]
        checks[f"{name}: documents that do not come back"] = [lost, "= 0", lost == 0]
    report = {
        "name": "token_ids", "unit": "MB per CPU second", "ours": round(min(rates.values())), "peers": {},
        "ratio": None, "megabytes": round(size, 1), "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }  # fmt: skip
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
