"""Texts made to hurt deduplication: time, memory and what was given up, for the arithmetic alone, on one core.

Run `python -m benchmarks.dedup_adversarial [--documents 100000] [--megabytes 200] [CASE …]`. Each case runs in a
process of its own, so that its peak of memory is its own (interpreter and libraries, 0.3 GB, included). A check fails
the run when a case gives a verdict that it must not. The last line is JSON.

copies: one text so many times. template: texts of one template, 176 shingles each, any two at Jaccard .89: the first in
keep order stays. unlike: the same, at .73: all stay, though all are candidates. growing: versions of a page, each a
line longer (a fiftieth of the documents: the text grows with the square). empty, and twins: texts of two words. one:
a single text of so many megabytes, and a copy of it with a word more.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.dedup_passages import Clock, Verdict, decide
from transforms.minhash import MinHash

Column = pa.LargeStringArray
BATCH: Final = 4096


def array(texts: list[str]) -> Column:
    """Return texts as a column."""
    return pa.array(texts, pa.large_string())


def own_words(name: str, count: int) -> str:
    """Return `count` words that no other name has."""
    return " ".join(f"{name}x{i}" for i in range(count))


def copies(documents: int, _: int) -> Column:
    """Return one text of 150 words, again and again."""
    return array([own_words("word", 150)] * documents)


def template(documents: int, _: int) -> Column:
    """Return texts that share 170 words and have 10 of their own: 166 of 176 shingles, Jaccard 166 / 186."""
    shared = own_words("shared", 170)
    return array([f"{shared} {own_words(str(row), 10)}" for row in range(documents)])


def unlike(documents: int, _: int) -> Column:
    """Return texts that share 170 words and have 30 of their own: Jaccard 166 / 226."""
    shared = own_words("shared", 170)
    return array([f"{shared} {own_words(str(row), 30)}" for row in range(documents)])


def growing(documents: int, _: int) -> Column:
    """Return versions of a page of 200 words, each with a line of five words more than the one before."""
    page, versions = own_words("page", 200), []
    for row in range(max(documents // 50, 1)):
        page += f"\nline {row} says {row} again"
        versions.append(page)
    return array(versions)


def empty(documents: int, _: int) -> Column:
    """Return texts without a byte."""
    return array([""] * documents)


def twins(documents: int, _: int) -> Column:
    """Return texts of two words, of which about a tenth are others' equals but for case."""
    draw = np.random.default_rng(0).integers(0, 1000, (documents, 3)).tolist()
    return array([f"{'One' if c % 2 else 'one'}{a} two{b}" for a, b, c in draw])


def one(_: int, megabytes: int) -> Column:
    """Return one long text, and the same with a word more."""
    size = megabytes * 1_000_000 // 7
    text = " ".join(map(str, np.random.default_rng(0).integers(100_000, 1_000_000, size).tolist()))
    return array([text, text + " more"])


def kept(count: int) -> Callable[[Verdict], bool]:
    """Return a check that so many documents stay."""
    return lambda verdict: int(verdict.stays.sum()) == count


def all_kept(verdict: Verdict) -> bool:
    """Whether every document stays."""
    return bool(verdict.stays.all())


def half_at_least(verdict: Verdict) -> bool:
    """Whether what goes has a survivor, and equal texts but for case went."""
    goes = ~verdict.stays
    return bool(goes.any() and verdict.stays[verdict.near[verdict.near >= 0]].all())


CASES: Final[dict[str, tuple[Callable[[int, int], Column], Callable[[Verdict], bool]]]] = {
    "copies": (copies, kept(1)),
    "template": (template, kept(1)),
    "unlike": (unlike, all_kept),
    "growing": (growing, half_at_least),
    "empty": (empty, kept(1)),
    "twins": (twins, half_at_least),
    "one": (one, kept(1)),
}


def measure(name: str, documents: int, megabytes: int) -> dict[str, Any]:
    """Return what became of one case, in this process."""
    make, holds = CASES[name]
    text = make(documents, megabytes)
    few = template(4, 0)
    decide(iter([few]), lambda rows: iter([few.take(pa.array(rows))]), MinHash(cap=2), Clock())  # compiles all kernels

    def again(rows: npt.NDArray[np.int64]) -> Iterator[Column]:
        for first in range(0, len(rows), BATCH):
            yield text.take(pa.array(rows[first : first + BATCH]))

    start, clock = time.process_time(), Clock()
    batches = (text.slice(first, BATCH) for first in range(0, len(text), BATCH))
    verdict = decide(batches, again, MinHash(), clock)
    return {
        "documents": len(text),
        "MB": round(text.nbytes / 1e6, 1),
        "seconds": round(time.process_time() - start, 2),
        "peak GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "stay": int(verdict.stays.sum()),
        "candidates": len(verdict.pairs.a),
        "given up": verdict.pairs.given_up,
        "edges": len(verdict.found),
        "holds": holds(verdict),
        "longest step": max(clock.seconds, key=clock.seconds.__getitem__),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print a row per case and one line of JSON; return 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args(arguments)
    rows = {}
    for name in options.cases or CASES:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows[name] = pool.apply(measure, (name, options.documents, options.megabytes))
        print(f"{name:10} " + "  ".join(f"{key} {value}" for key, value in rows[name].items()), flush=True)
    print(json.dumps({"name": "dedup_adversarial", "cases": rows}))
    return int(not all(row["holds"] for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
