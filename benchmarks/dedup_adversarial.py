"""Texts made to hurt deduplication, each case a run of its own through the engine: time, memory, what was given up.

The first in the file comes first in keep order. What must come out is known by arithmetic, not by another program:

copies      one text of 150 words, again and again: the first stays
template    170 words in common and 10 of their own, any two at Jaccard 166 / 186: the first stays
unlike      the same with 30 of their own, 166 / 226: candidates all, and all stay
growing     versions of a page of 200 words, each a line of five words longer than the one before. Their text grows with
            the square of their number: 100,000 of them would be 200 GB, so there are `Amount.versions`
sliding     100,000 versions, each a line on: one more below, one less above. A chain, the ends of which are unlike
empty       texts without a byte: all go, as empty
twins       texts of two words, of which some are others' equals but for case
marks       Thai and Hindi texts of one to five words and a number, in pairs that differ in marks alone: all stay
chain       A ~ B ~ C, A and C unlike: B goes because of A, and C stays
one         a single text of so many MB, and the same with a word more: the first stays
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dedup_quality import Check
from benchmarks.dedup_runs import Measured, Spec, measure, verdicts_of

THRESHOLD: Final = Fraction(4, 5)
ROWS_AT_ONCE: Final = 4096
BYTES_AT_ONCE: Final = 64 << 20
BASE: Final = 196
"""Shingles of a page of 200 words."""
LINE: Final = 5
"""Words, and so shingles, that a line adds."""
SHIFT: Final = 6
"""Words by which B is further on than A, and C than B, in texts of 100: similar by 90 / 102 = .88, A and C by .78."""
THAI: Final = (("มา", "ม้า"), ("ไม", "ไม่"), ("เสือ", "เสื่อ"), ("ปา", "ป่า"), ("ขาว", "ข่าว"))
HINDI: Final = (("कल", "काल"), ("दिन", "दीन"), ("सुना", "सूना"), ("बल", "बाल"), ("फल", "फूल"))


@dataclass(frozen=True, slots=True)
class Amount:
    """How much: documents, versions of a growing page, MB of the one long text."""

    documents: int
    versions: int
    megabytes: int


AMOUNTS: Final = {"small": Amount(1_200, 150, 2), "full": Amount(100_000, 4_000, 200)}


@dataclass(frozen=True, slots=True)
class Case:
    """Texts, and whether what the engine made of them is right: told what it measured, its store, and the amount."""

    texts: Callable[[Amount], Iterator[str]]
    holds: Callable[[Measured, Path, Amount], bool]


def own_words(name: str, count: int) -> str:
    """Return `count` words that no other name has."""
    return " ".join(f"{name}x{i}" for i in range(count))


def copies(amount: Amount) -> Iterator[str]:
    """Yield one text, again and again."""
    text = own_words("word", 150)
    return (text for _ in range(amount.documents))


def of_template(own: int) -> Callable[[Amount], Iterator[str]]:
    """Return what yields texts that share 170 words and have `own` words of their own."""
    shared = own_words("shared", 170)
    return lambda amount: (f"{shared} {own_words(str(row), own)}" for row in range(amount.documents))


def line(number: int) -> str:
    """Return a line of five words that no other number has."""
    return f"line{number} says{number} what{number} it{number} means{number}"


def growing(amount: Amount) -> Iterator[str]:
    """Yield versions of a page, each with a line more."""
    page = own_words("page", 200)
    for row in range(amount.versions):
        yield page
        page += f"\n{line(row)}"


def sliding(amount: Amount) -> Iterator[str]:
    """Yield versions of 40 lines, each a line on."""
    lines = [line(number) for number in range(40)]
    for row in range(amount.documents):
        yield "\n".join(lines)
        lines = [*lines[1:], line(40 + row)]


def twin_names(amount: Amount) -> list[tuple[int, int, int]]:
    """Return the two numbers of each text of two words, and whether it is capitalised."""
    drawn = np.random.default_rng(0).integers(0, amount.documents // 50, (amount.documents, 3))
    return [(a, b, c % 2) for a, b, c in drawn.tolist()]


def twins(amount: Amount) -> Iterator[str]:
    """Yield texts of two words."""
    return (f"{'One' if capital else 'one'}{a} two{b}" for a, b, capital in twin_names(amount))


def marks(amount: Amount) -> Iterator[str]:
    """Yield pairs of Thai and Hindi texts with a number: one word that differs in a mark, or all five."""
    for number in range(amount.documents // 24):
        for pairs in (THAI, HINDI):
            for pair in pairs:
                yield from (f"{word} {number}" for word in pair)
            yield from (" ".join(f"{word} {number}" for word in words) for words in zip(*pairs, strict=True))


def chain(amount: Amount) -> Iterator[str]:
    """Yield A, B and C, again and again, each time of other words."""
    for number in range(amount.documents // 3):
        words = [f"w{number}x{i}" for i in range(100 + 2 * SHIFT)]
        for place in range(3):
            yield " ".join(words[place * SHIFT : place * SHIFT + 100])


def one(amount: Amount) -> Iterator[str]:
    """Yield one long text, and the same with a word more."""
    count = amount.megabytes * 1_000_000 // 7
    text = " ".join(map(str, np.random.default_rng(0).integers(100_000, 1_000_000, count).tolist()))
    yield text
    yield text + " more"


def kept(count: int) -> Callable[[Measured, Path, Amount], bool]:
    """Return a check that so many documents stay."""
    return lambda made, store, amount: made.kept == count


def all_kept(made: Measured, store: Path, amount: Amount) -> bool:
    """Whether every document stays."""
    return made.kept == made.documents


def each_has_its_survivor(
    similarity: Callable[[int, int], Fraction], fewest: Callable[[int], int]
) -> Callable[[Measured, Path, Amount], bool]:
    """Return a check that every version that goes names one that stays, with the similarity that these two have."""

    def holds(made: Measured, store: Path, amount: Amount) -> bool:
        stays, names, gone = verdicts_of(store)
        staying = set(stays)
        found = [(int(names[name]), names.get(went.survivor or b"", ""), went) for name, went in gone.items()]
        right = all(
            survivor in staying
            and Fraction(went.shared or 0, went.whole or 1) == similarity(version, int(survivor)) >= THRESHOLD
            for version, survivor, went in found
        )
        return right and len(gone) + len(stays) == made.documents and fewest(made.documents) <= made.kept

    return holds


def growing_similarity(a: int, b: int) -> Fraction:
    """Return the Jaccard similarity of two versions of a growing page: one holds the other."""
    return Fraction(BASE + LINE * min(a, b), BASE + LINE * max(a, b))


def growing_survivors(versions: int) -> int:
    """Return how many versions stay where every pair is compared: none of them is similar to the one before."""
    staying, last = 0, -1
    for version in range(versions):
        if last < 0 or growing_similarity(last, version) < THRESHOLD:
            staying, last = staying + 1, version
    return staying


def sliding_similarity(a: int, b: int) -> Fraction:
    """Return the Jaccard similarity of two versions of a sliding page, four lines of which in five are the same."""
    apart = LINE * abs(a - b)
    return Fraction(max(BASE - apart, 0), BASE + min(apart, BASE))


def sliding_survivors(versions: int) -> int:
    """Return how many versions stay where every pair is compared: every fifth."""
    return -(-versions // 5)


def distinct_twins(made: Measured, store: Path, amount: Amount) -> bool:
    """Whether as many texts stay as differ but for case."""
    return made.kept == len({(a, b) for a, b, _ in twin_names(amount)})


def ends_of_chains_stay(made: Measured, store: Path, amount: Amount) -> bool:
    """Whether A and C of each chain stay and the ledger has A as the survivor of B, with their similarity.

    In some 6 of a million chains no band has B in it with A, in which case it stays and C goes; of 33,000 none to two.
    """
    stays, names, gone = verdicts_of(store)
    found = {
        int(names[name]): (int(names[went.survivor or b""]), went.shared, went.whole) for name, went in gone.items()
    }
    right = {number: (number - 1, 96 - SHIFT, 96 + SHIFT) for number in range(1, made.documents, 3)}
    other = sum(found.get(number) != verdict for number, verdict in right.items())
    return other <= 3 and len(found) <= len(right) and len(stays) + len(gone) == made.documents


CASES: Final = {
    "copies": Case(copies, kept(1)),
    "template": Case(of_template(10), kept(1)),
    "unlike": Case(of_template(30), all_kept),
    "growing": Case(growing, each_has_its_survivor(growing_similarity, growing_survivors)),
    "sliding": Case(sliding, each_has_its_survivor(sliding_similarity, sliding_survivors)),
    "empty": Case(lambda amount: iter([""] * amount.documents), kept(0)),
    "twins": Case(twins, distinct_twins),
    "marks": Case(marks, all_kept),
    "chain": Case(chain, ends_of_chains_stay),
    "one": Case(one, kept(1)),
}


def write_texts(path: Path, texts: Iterator[str]) -> int:
    """Write texts with their place as id, a row group at a time; return the bytes of all."""
    schema = pa.schema([("id", pa.large_string()), ("text", pa.large_string()), ("place", pa.int64())])
    path.parent.mkdir(parents=True)
    total, held, first, waiting = 0, list[str](), 0, 0

    def write() -> None:
        places = list(range(first, first + len(held)))
        writer.write_table(pa.table([list(map(str, places)), held, places], schema=schema))

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for text in texts:
            held.append(text)
            waiting += len(text.encode())
            if len(held) == ROWS_AT_ONCE or waiting > BYTES_AT_ONCE:
                write()
                total, first, waiting = total + waiting, first + len(held), 0
                held = []
        write()
    return total + waiting


def adversarial(work: Path, size: str) -> tuple[dict[str, Check], dict[str, dict[str, float]]]:
    """Run every case, print a row for each, and return what must hold and the figures."""
    amount, checks, figures = AMOUNTS[size], {}, {}
    print(
        f"{'case':9} {'documents':>9} {'MB':>6} {'stay':>7} {'CPU s':>7} {'task MB':>7} {'all MB':>7} "
        f"{'compared':>10} {'given up':>14}  longest task"
    )
    for name, case in CASES.items():
        root = work / f"case-{name}"
        total = write_texts(root / "in" / "texts.parquet", case.texts(amount))
        made = measure(Spec("unique_by_place", root / "in", root / "store"))
        right = case.holds(made, root / "store", amount)
        shutil.rmtree(root)
        longest = max(made.jobs, key=lambda job: made.jobs[job].seconds)
        given_up = made.counts["given_up"]
        print(
            f"{name:9} {made.documents:9,} {total / 1e6:6.0f} {made.kept:7,} {made.cpu:7.2f} {made.task_mb:7,} "
            f"{made.peak_mb:7,} {made.counts['compared']:10,} {given_up:14,}  {longest}{'' if right else '  WRONG'}",
            flush=True,
        )
        checks[f"{name}: what stays, of {made.documents:,}"] = [made.kept, "as arithmetic says", right]
        figures[name] = {
            "MB": round(total / 1e6, 1),
            "CPU s": round(made.cpu, 2),
            "task MB": made.task_mb,
            "given up": given_up,
        }
    return checks, figures
