"""Mutated and hostile pages through the block engine: no crash, no page over its time, memory bounded.

Run `python -m benchmarks.extraction_hostile [--size small|full] [--processes N]`: 300 or 100,000 mutants of the pages
in ../shared/data/extraction (or of a few written here, where that is not there), cut to at most 30 kB, each with
flipped bits, pieces cut out, doubled, moved or replaced by markup; then pages made to exhaust: 100,000 nested elements,
a colspan of 2^53, an attribute of 50 MB, 50 MB of tags, bombs of references. A mutant follows from its number, so
processes can share them and one that fails can be made again. Each is decoded and asked for text and for Markdown. A
mutant's bound is .1 s and 1 µs a byte of CPU time; that of pages made to exhaust, of which the engine reads 60,000
blocks, 5 s and 1 µs a byte. Kernels are compiled before anything is timed. The last line is JSON; the exit status is 1
when a check fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from typing import Final

from benchmarks.extractor_data import DATA, content_of, read_gold
from transforms.pages.engine import extract
from transforms.pages.writing import MARKS

COUNTS: Final = {"small": 300, "full": 100_000}
MOST_SECONDS: Final = {"mutant": 0.1, "bomb": 5.0}
SECONDS_PER_BYTE: Final = 1e-6
MOST_MEMORY: Final = 1_500_000_000
PART: Final = 1_000
"""Mutants that a process tries before it says so."""

_LONGEST: Final = 30_000
_OWN: Final = (
    b"<html><head><title>x</title></head><body><ul><li>a<li>b</ul><table><tr><td>c</table><p>d <a href=/>e</a></body>",
    b"<div class=post><h1>T</h1><pre>a\n  b</pre><math><mi>x</mi></math><svg><title>y</title></svg><select><option>z",
)
_PIECES: Final = (
    *(b"<", b">", b"<!--", b"-->", b"</", b"<p>", b"</div>", b"<table>", b"<td>", b"<svg>", b"<math>", b"</math>"),
    *(b"<script>", b"</script>", b"<pre>", b"<select>", b"<a href='", b'"', b"&", b"&#x110000;", b"&nGt;", b"\0"),
    *(b"<![CDATA[", b"<title>", b"<textarea>", b"<template>", b"<noscript>", b"<body>", b"<frameset>", b"\xf0\x9f"),
)


def mutant(pages: Sequence[bytes], number: int) -> bytes:
    """Return the mutated page of this number, the same each time."""
    chance = random.Random(f"mutant {number}")
    page = bytearray(chance.choice(pages))
    start = chance.randrange(max(1, len(page) - _LONGEST))
    page = page[start : start + chance.randrange(1, _LONGEST)]
    for _ in range(chance.randrange(1, 30)):
        _mutate(page, chance)
    return bytes(page)


def _mutate(page: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(page) + 1)
    end = min(len(page), at + chance.randrange(1, 200))
    match chance.randrange(5):
        case 0 if page:
            page[chance.randrange(len(page))] ^= 1 << chance.randrange(8)
        case 1:
            del page[at:end]
        case 2:
            page[at:at] = page[at:end] * chance.randrange(1, 20)
        case 3:
            page[at:at] = chance.choice(_PIECES) * chance.choice((1, 1, 3, 50))
        case _:
            page[at:end] = chance.randbytes(end - at)


def bombs(scale: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and page; the largest has `scale` megabytes."""
    size = scale * 1_000_000
    yield "100,000 nested elements", b"<div>" * 100_000 + b"x"
    yield "100,000 nested inline elements", b"<b>" * 100_000 + b"x" + b"</b>" * 100_000
    yield "100,000 nested lists", b"<ul><li>" * 100_000 + b"x"
    yield "colspan 2^53", b"<table><tr><td colspan=9007199254740992 rowspan=9007199254740992>x<td>y</table>" * 1000
    yield "attribute", b"<p class='" + b"a b " * (size // 4) + b"'>x"
    yield "tags", b"<b>" * (size // 3)
    yield "blocks", b"<p>x" * (size // 4)
    yield "references", b"&nGt;" * (size // 5)
    yield "end tags", b"<div>" * 600 + b"</p>" * (size // 40)
    yield "math", b"<math>" * (size // 6)
    yield "cells", b"<table>" + b"<td>x" * (size // 5)
    yield "one word", b"x" * size
    yield "comments", b"<!--" * (size // 4)


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of some mutants: CPU seconds in all and of the slowest, those over their time, bytes of memory."""

    seconds: float
    slowest: float
    over: tuple[int, ...]
    memory: int


def seconds_of(page: bytes) -> float:
    """Return the CPU time that a page takes, in text and in Markdown the longer of both.

    Raises:
        AssertionError: what the engine says of the page cannot be.
    """
    content = content_of(page)
    times = []
    for output in ("text", "markdown"):
        start = time.process_time()
        extracted = extract(content, output=output, marks=MARKS)  # type: ignore[arg-type]
        times.append(time.process_time() - start)
        extracted.text.encode()
        if extracted.kept > extracted.visible or not 0 <= extracted.confidence <= 10_000:
            raise AssertionError(f"kept {extracted.kept} of {extracted.visible}, confidence {extracted.confidence}")
    return max(times)


def pages_to_mutate() -> list[bytes]:
    """Return news pages, where they are there, and a few of ours."""
    news = [page.html for page in read_gold(("aeb",))] if (DATA / "aeb.parquet").exists() else []
    return [*news, *_OWN]


def warm() -> None:
    """Compile what is compiled on first use, decoders included."""
    for page in (*_OWN, *(mutant(_OWN, number) for number in range(20))):
        seconds_of(page)


def tried(numbers: range) -> Tried:
    """Try the mutants of these numbers.

    Raises:
        RuntimeError: one of them raised; the number makes it again.
    """
    pages, slowest, over = pages_to_mutate(), 0.0, []
    warm()
    started = time.process_time()
    for number in numbers:
        page = mutant(pages, number)
        try:
            taken = seconds_of(page)
        except Exception as error:
            raise RuntimeError(f"mutant {number}: {error!r}") from error
        slowest = max(slowest, taken)
        if taken > MOST_SECONDS["mutant"] + SECONDS_PER_BYTE * len(page):
            over.append(number)
    return Tried(time.process_time() - started, slowest, tuple(over), memory_of())


def memory_of() -> int:
    """Return the most memory that this process held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def try_mutants(count: int, processes: int) -> Tried:
    """Try the first `count` mutants in some processes, and say how far it is."""
    parts = [range(first, min(first + PART, count)) for first in range(0, count, PART)]
    warm()
    found: list[Tried] = []
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for part in as_completed(pool.submit(tried, numbers) for numbers in parts):
            found.append(part.result())
            print(
                f"{len(found)} of {len(parts)} parts: {len(found[-1].over)} over, {found[-1].slowest:.3f} s", flush=True
            )
    return Tried(
        sum(part.seconds for part in found),
        max(part.slowest for part in found),
        tuple(sorted(number for part in found for number in part.over)),
        max(part.memory for part in found),
    )


def try_bombs(scale: int) -> list[str]:
    """Return the names of pages made to exhaust that take longer than they may."""
    over = []
    for name, page in bombs(scale):
        taken = seconds_of(page)
        if taken > MOST_SECONDS["bomb"] + SECONDS_PER_BYTE * len(page):
            over.append(name)
        print(f"{name:35} {len(page) / 1e6:6.1f} MB {taken:8.3f} s", flush=True)
    return over


def main(arguments: list[str] | None = None) -> int:
    """Print what took longest, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(COUNTS), default="full", help="how many (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="that share the mutants (default: %(default)s)")
    options = parser.parse_args(arguments)
    count = COUNTS[options.size]
    mutants = try_mutants(count, options.processes)
    rate = count / mutants.seconds
    print(f"{count:,} mutants: {rate:.0f} pages/s, slowest {mutants.slowest * 1000:.1f} ms, over: {mutants.over[:20]}")
    exhausting = try_bombs(50 if options.size == "full" else 1)
    over, memory = len(mutants.over) + len(exhausting), max(mutants.memory, memory_of())
    checks = {
        "pages over their time": [over, "0", over == 0],
        "memory of a process": [memory, f"≤ {MOST_MEMORY}", memory <= MOST_MEMORY],
    }
    for check, (value, bound, holds) in checks.items():
        print(f"{check:45} {value:12} {bound:12} {'holds' if holds else 'FAILS'}")
    versions = {"python": platform.python_version(), "numba": version("numba")}
    report = {"name": "extraction hostile", "unit": "pages/s", "ours": round(rate, 1), "peers": {}, "ratio": None}
    print(json.dumps({**report, "checks": checks, "versions": versions}, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
