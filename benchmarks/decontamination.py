"""Decontamination measured: planted benchmark items found, others left alone, speed, beside other tools.

Run `python -m benchmarks.decontamination [--size small|full] [--peers] [--hits]`. It needs ../shared/data: five
benchmarks (GSM8K, HumanEval, MBPP, MMLU STEM, TruthfulQA; 6,292 items) and the corpus that they are planted into.

Each case is one item, written down in one of the ways of `WAYS`, inside a text of the corpus that has nothing to do
with it; it is found if its document is dropped. Length classes are words of the text planted (question; with its answer
where the question alone is listed as too short). Items that the index lists as unprotectable are counted apart. For
precision the odd items of each benchmark are indexed and the even ones planted, without those that have a twin among
the odd ones (the benchmarks repeat and vary themselves: equal questions with other choices, one function under two
names): Jaccard similarity of the words of question or answer of at least `TWIN`, found without any of the code that is
measured. Rates are MB (10^6 bytes) of UTF-8 per
CPU second. The last line is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import sys
import textwrap
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.decontamination_items import DATA, benchmarks
from benchmarks.decontamination_scale import at_scale
from transforms.contamination import Decontaminate, Finding, Item
from transforms.contamination_index import ALONE, JOINED, build_index, load_index
from transforms.contamination_units import BOTH, CHOICES, QUESTION
from transforms.segmentation import find_words

CASES: Final = {"small": 40, "full": 10_000}  # per way, a fifth of them of each benchmark that has so many items
PEER_CASES: Final = 1_000
BYTES: Final = {"small": 4_000_000, "full": 80_000_000}
HOST_WORDS: Final = 120
LONG_WORDS: Final = 10_000
TWIN: Final = 0.6
PORTION: Final = 500
"""Cases in memory at a time."""
GOLD: Final = {
    "corpora/multidomain": "text",
    "extraction/aeb": "gold_text",
    "extraction/wcxb_dev": "gold_text",
    "extraction/wcxb_dev2": "gold_text",
    "duplicates/spdx_docs": "text",
    "lid/udhr2": "text",
    "quality/toxicity_en": "text",
}
"""Real texts without any of the benchmarks, and the column that has them: whatever is found there is read."""
PACKAGES: Final = ("numpy", "numba", "pyarrow", "datatrove")
FOREIGN: Final = "meanwhile rain fell over the hills while two dogs slept near an old mill and nobody came along"

Recall = dict[str, dict[str, tuple[int, int]]]
"""Way of writing → length class → (found, planted)."""
Way = Callable[[str, random.Random, Sequence[str]], str]


def corpus(size: int) -> pa.LargeStringArray:
    """Return at most `size` bytes of texts, spread over the corpus."""
    column = pq.read_table(DATA / "corpora" / "multidomain.parquet", columns=["text"]).column("text")
    texts = pa.concat_arrays(column.cast(pa.large_string()).chunks)
    order = list(range(len(texts)))
    random.Random(0).shuffle(order)
    lengths = pc.binary_length(texts).to_pylist()
    chosen, total = [], 0
    for row in order:
        if total + lengths[row] > size:
            break
        chosen.append(row)
        total += lengths[row]
    return texts.take(pa.array(sorted(chosen)))


# Ways of writing an item down.


def as_it_is(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Verbatim."""
    return text


def rewrapped(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Lines of 40 to 80 columns."""
    return textwrap.fill(" ".join(text.split()), draw.randint(40, 80))


def recased(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """All upper or all lower case."""
    return text.upper() if draw.random() < 0.5 else text.lower()


def unpunctuated(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Punctuation and symbols gone, what they divided written together."""
    return re.sub(r"[^\w\s]|_", "", text)


def respaced(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Each run of punctuation and symbols one space, upper case."""
    return re.sub(r"(?:[^\w\s]|_)+", " ", text).upper()


def repunctuated(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Other marks after words."""
    return re.sub(r"(?<=\w)(?:[.,;:?!]+)?(?=\s)", lambda _: draw.choice([",", ";", " -", ".", "", ""]), text)


def html(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Paragraphs, line breaks and emphasis as HTML."""
    words = text.split(" ")
    for place in draw.sample(range(len(words)), max(1, len(words) // 12)):
        words[place] = f"<b>{words[place]}</b>"
    return "<div class='q'><p>" + " ".join(words).replace("\n", "<br/>\n") + "</p></div>"


def markdown(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """A heading, emphasis and block quotation as Markdown."""
    words = text.split(" ")
    for place in draw.sample(range(len(words)), max(1, len(words) // 12)):
        words[place] = f"**{words[place]}**"
    return "### Exercise\n\n> " + " ".join(words).replace("\n", "\n> ")


def edited(percent: int) -> Way:
    """Return the way that puts other words in place of so many in a hundred (at least one)."""

    def edit(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
        pieces = re.split(r"(\s+)", text)
        words = [place for place, piece in enumerate(pieces) if re.search(r"\w", piece)]
        for place in draw.sample(words, min(len(words), max(1, round(len(words) * percent / 100)))):
            pieces[place] = draw.choice(vocabulary)
        return "".join(pieces)

    return edit


def every_tenth(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Every tenth word another one."""
    pieces = re.split(r"(\s+)", text)
    words = [place for place, piece in enumerate(pieces) if re.search(r"\w", piece)]
    for place in words[9::10]:
        pieces[place] = draw.choice(vocabulary)
    return "".join(pieces)


def split_by_foreign(text: str, draw: random.Random, vocabulary: Sequence[str]) -> str:
    """Up to twenty words that do not belong there, in one place."""
    words = text.split(" ")
    place = draw.randint(1, max(1, len(words) - 1))
    foreign = [draw.choice(FOREIGN.split()) for _ in range(draw.randint(1, 20))]
    return " ".join([*words[:place], *foreign, *words[place:]])


WAYS: Final[dict[str, Way]] = {
    "verbatim": as_it_is,
    "with its answer": as_it_is,
    "Question: … Answer: …": as_it_is,
    "re-wrapped": rewrapped,
    "re-cased": recased,
    "re-punctuated": repunctuated,
    "without punctuation": unpunctuated,
    "punctuation as spaces": respaced,
    "HTML": html,
    "Markdown": markdown,
    "1 % edited": edited(1),
    "3 % edited": edited(3),
    "5 % edited": edited(5),
    "10 % edited": edited(10),
    "every 10th word": every_tenth,
    "split by foreign words": split_by_foreign,
    "inside 10,000 words": as_it_is,
}
PEER_WAYS: Final = ("verbatim", "re-wrapped", "re-cased", "without punctuation", "5 % edited", "every 10th word")
PLAIN_WAYS: Final = tuple(WAYS)[:8]
"""The ways that change no word."""


@dataclass(frozen=True, slots=True)
class Case:
    """An item planted in a text."""

    way: str
    benchmark: int
    item: Item
    words: int
    status: int
    text: str


def cases(count: int, hosts: Sequence[Sequence[str]], seed: int = 1) -> Iterator[Case]:
    """Yield `count` cases for each way, over all benchmarks."""
    draw = random.Random(seed)
    index = load_index(benchmarks())
    status = dict(zip(index.items, index.status.tolist(), strict=True))
    parts: dict[tuple[int, int], set[int]] = defaultdict(set)
    for place, part in zip(index.units.item.tolist(), index.units.part.tolist(), strict=True):
        parts[index.items[place]].add(part)
    first = {item: index.items[place] for item, place in zip(index.items, index.same.tolist(), strict=True)}
    items = [(number, item) for number, benchmark in enumerate(benchmarks()) for item in benchmark.items()]
    vocabulary = re.findall(r"[a-z]{3,}", " ".join(word for host in hosts[:200] for word in host).lower())
    for way, write in WAYS.items():
        for number, item in balanced(items, count, draw):
            known = status[number, item.number]
            text = asked(item, parts.get(first[number, item.number], set()))
            words = len(find_words(pa.array([text], pa.large_string())).starts)
            if way == "with its answer":
                text += "\n" + item.answer if known == ALONE else ""
            elif way.startswith("Question:"):
                text = "Question: " + text.replace("\n" + item.answer, "\nAnswer: " + item.answer)
            planted = write(text, draw, vocabulary)
            around = LONG_WORDS if way == "inside 10,000 words" else HOST_WORDS
            yield Case(way, number, item, words, known, planted_in(planted, hosts, around, draw))


def asked(item: Item, parts: set[int]) -> str:
    """Return the question of `item` as far as the index needs it: alone, with its answer, or with its choices."""
    if QUESTION not in parts and BOTH in parts:
        return f"{item.question}\n{item.answer}"
    if QUESTION not in parts and CHOICES in parts:
        return "\n".join(
            [item.question, *(f"{name}. {c}" for name, c in zip("ABCDEFGHIJ", item.choices, strict=False))]
        )
    return item.question


def balanced(items: list[tuple[int, Item]], count: int, draw: random.Random) -> list[tuple[int, Item]]:
    """Return `count` items, of each benchmark as many as there are, at most its share."""
    of = defaultdict(list)
    for number, item in items:
        of[number].append((number, item))
    return [pair for mine in of.values() for pair in draw.sample(mine, min(len(mine), -(-count // len(of))))]


def planted_in(text: str, hosts: Sequence[Sequence[str]], words: int, draw: random.Random) -> str:
    """Return `text` between two halves of `words` words of the corpus, whose texts `hosts` are in words."""
    around: list[str] = []
    while len(around) < words:
        host = draw.choice(hosts)
        start = draw.randrange(len(host))
        around += host[start : start + words]
    half = draw.randint(0, words)
    return " ".join(around[:half]) + "\n\n" + text + "\n\n" + " ".join(around[half:words])


def length_class(case: Case) -> str:
    """Return the length class of a case."""
    if case.status not in (ALONE, JOINED):
        return "listed"
    return "≥ 20" if case.words >= 20 else "8-19"


def recall(
    count: int, hosts: Sequence[Sequence[str]], decontaminate: Decontaminate
) -> dict[str, dict[str, tuple[int, int]]]:
    """Return way → length class → (found, planted)."""
    table: Recall = defaultdict(dict)
    several = cases(count, hosts)
    while planted := list(islice(several, PORTION)):
        for case, hit in zip(planted, flagged([case.text for case in planted], decontaminate), strict=True):
            had, all_of = table[case.way].get(name := length_class(case), (0, 0))
            table[case.way][name] = (had + hit, all_of + 1)
    return table


def flagged(texts: Sequence[str], decontaminate: Decontaminate) -> list[bool]:
    """Return for each text whether its document would be dropped."""
    found = decontaminate.findings(pa.array(texts, pa.large_string()))
    return [any(f.verdict in decontaminate.verdicts for f in found.get(row, [])) for row in range(len(texts))]


@dataclass(frozen=True, slots=True)
class Flagged:
    """Items planted that are not indexed: how many are called leak and variant, without and with twins."""

    planted: int
    leaks: int
    variants: int
    twins: int
    twins_flagged: int


def precision(hosts: Sequence[Sequence[str]], most: int) -> tuple[dict[str, Flagged], list[str]]:
    """Return what is flagged of the items of each benchmark that are not indexed, and the findings in words."""
    named = benchmarks()
    draw = random.Random(2)
    result, told = {}, []
    halves = {number: (benchmark.items()[1::2], benchmark.items()[0::2]) for number, benchmark in enumerate(named)}
    judge = _with_index([(number, item) for number, (indexed, _) in halves.items() for item in indexed])
    for number, (indexed, planted) in halves.items():
        chosen = planted[:most]
        twin = twins(chosen, indexed)
        texts = [planted_in(f"{item.question}\n{item.answer}", hosts, HOST_WORDS, draw) for item in chosen]
        verdicts: Counter[tuple[str, bool]] = Counter()
        for row, findings in judge(texts).items():
            verdict = findings[0].verdict
            if verdict in ("leak", "variant"):
                verdicts[verdict, twin[row]] += 1
                note = "a twin" if twin[row] else "NO TWIN"
                told.append(f"{_told(findings[0], texts[row])}   [{named[number].name} {chosen[row].number}, {note}]")
        counts = [verdicts[verdict, False] for verdict in ("leak", "variant")]
        both = sum(verdicts[verdict, True] for verdict in ("leak", "variant"))
        result[named[number].name] = Flagged(len(chosen) - sum(twin), *counts, sum(twin), both)
    return result, told


def twins(planted: Sequence[Item], indexed: Sequence[Item]) -> list[bool]:
    """Return for each item whether an indexed one has much the same question or answer, by sets of words."""

    def words(text: str) -> frozenset[str]:
        return frozenset(re.findall(r"[a-z]+|\d+", text.lower()))

    def alike(a: frozenset[str], b: frozenset[str]) -> bool:
        return len(a & b) >= TWIN * len(a | b) and len(b) > 3

    others = [(words(item.question), words(item.answer)) for item in indexed]
    mine = [(words(item.question), words(item.answer)) for item in planted]
    return [any(alike(q, p) or (len(a) > 9 and alike(a, b)) for p, b in others) for q, a in mine]


def _with_index(read: list[tuple[int, Item]]) -> Callable[[Sequence[str]], dict[int, list[Finding]]]:
    """Return the findings of `Decontaminate` with an index of the items `read` alone."""
    index, decontaminate = build_index(benchmarks(), read), Decontaminate(benchmarks())
    return lambda texts: decontaminate.findings(pa.array(texts, pa.large_string()), index)


def numbers_changed(text: str, draw: random.Random) -> str:
    """Return `text` with every number in digits another one."""

    def other(match: re.Match[str]) -> str:
        value = match.group()
        while (new := "".join(draw.choice("123456789") for _ in value)) == value:
            pass
        return new

    return re.sub(r"\d+", other, text)


def changed_items(hosts: Sequence[Sequence[str]], decontaminate: Decontaminate, count: int) -> tuple[int, int, int]:
    """Return how many of GSM8K's questions with other numbers are called leak and variant, of how many."""
    texts = [text for text, _ in numbers_planted(hosts, count)]
    found = decontaminate.findings(pa.array(texts, pa.large_string()))
    verdicts = Counter(findings[0].verdict for findings in found.values())
    return verdicts["leak"], verdicts["variant"], len(texts)


def numbers_planted(hosts: Sequence[Sequence[str]], count: int) -> list[tuple[str, Item]]:
    """Return texts with GSM8K's questions with other numbers, and their items."""
    draw = random.Random(3)
    items = [item for item in benchmarks()[0].items() if re.search(r"\d", item.question)][:count]
    return [(planted_in(numbers_changed(item.question, draw), hosts, HOST_WORDS, draw), item) for item in items]


def corpus_hits(texts: pa.LargeStringArray, decontaminate: Decontaminate) -> float:
    """Return MB per CPU second on the corpus."""
    size = int(pc.sum(pc.binary_length(texts)).as_py()) / 1e6
    decontaminate.findings(texts.slice(0, 20))
    start = time.process_time()
    decontaminate.findings(texts)
    return size / (time.process_time() - start)


def gold_hits(decontaminate: Decontaminate) -> dict[str, tuple[int, list[str], list[str]]]:
    """Return for each set of `GOLD` its number of texts, and what is found and nearly found there, in words."""
    result = {}
    for name, column in GOLD.items():
        texts = gold_texts(name, column)
        found = decontaminate.findings(texts)
        told = [(f.verdict, _told(f, texts[row].as_py())) for row, mine in found.items() for f in mine]
        hits, near = ([words for verdict, words in told if bool(verdict) == real] for real in (True, False))
        result[name] = (len(texts), hits, near)
    return result


def gold_texts(name: str, column: str) -> pa.LargeStringArray:
    """Return the texts of a set of `GOLD`."""
    read = pq.read_table(DATA / f"{name}.parquet", columns=[column]).column(column)
    return pa.concat_arrays(read.cast(pa.large_string()).drop_null().chunks)


def _told(finding: Finding, text: str) -> str:
    start, end = finding.spans[0][0], finding.spans[-1][1]
    shown = " ".join(text[start:end].split())[:160]
    return (
        f"{finding.verdict:9} {finding.benchmark} {finding.item} {finding.part} {finding.covered}/{finding.of} "
        f"run {finding.longest}: {shown!r}"
    )


def peers(hosts: Sequence[Sequence[str]], texts: pa.LargeStringArray, count: int) -> dict[str, dict[str, Any]]:
    """Return what other tools do on some of the same cases, on items that are not indexed, and on real texts."""
    from benchmarks.contamination_peers import PEERS

    items = [item for benchmark in benchmarks() for item in benchmark.items()]
    planted = [case for case in cases(count, hosts) if length_class(case) != "listed" and case.way in PEER_WAYS]
    some: list[str] = texts.take(pa.array(range(0, len(texts), 20))).to_pylist()
    size = sum(len(text.encode()) for text in some) / 1e6
    indexed, others = strangers(hosts, count)
    numbers = [text for text, _ in numbers_planted(hosts, count)]
    real = {name: gold_texts(name, column).to_pylist() for name, column in GOLD.items() if "corpora" not in name}
    result: dict[str, dict[str, Any]] = {}
    for name, make in PEERS.items():
        peer = make(items)
        hits: dict[str, list[bool]] = defaultdict(list)
        for case, hit in zip(planted, peer([case.text for case in planted]), strict=True):
            hits[f"{case.way}, {length_class(case)}"].append(hit)
        start = time.process_time()
        flags = peer(some)
        rate = size / (time.process_time() - start)
        wrong = make(indexed)(others)
        told = {
            "MB/s": round(rate, 2),
            "recall": {way: round(sum(mine) / len(mine), 3) for way, mine in sorted(hits.items())},
            "other half flagged": round(sum(wrong) / len(wrong), 4),
            "numbers changed, flagged": round(sum(peer(numbers)) / len(numbers), 3),
            "corpus flagged": f"{sum(flags)} of {len(flags)}",
            "real texts flagged": {what: f"{sum(peer(those))} of {len(those)}" for what, those in real.items()},
        }
        result[name] = told
        print(f"{name}: {json.dumps(told, ensure_ascii=False)}")
    return result


def strangers(hosts: Sequence[Sequence[str]], most: int) -> tuple[list[Item], list[str]]:
    """Return the odd items, and texts with at most `most` even items of each benchmark that have no twin among them."""
    draw = random.Random(2)
    indexed, texts = [], []
    for benchmark in benchmarks():
        odd, even = benchmark.items()[1::2], benchmark.items()[0::2][:most]
        indexed += odd
        texts += [
            planted_in(f"{item.question}\n{item.answer}", hosts, HOST_WORDS, draw)
            for item, twin in zip(even, twins(even, odd), strict=True)
            if not twin
        ]
    return indexed, texts


def checks_of(
    table: Recall,
    other: dict[str, Flagged],
    changed: tuple[int, int, int],
    rate: float,
) -> dict[str, list[Any]]:
    """Return what must hold."""
    checks: dict[str, list[Any]] = {}

    def least(name: str, found: tuple[int, int], bound: float) -> None:
        share = found[0] / max(1, found[1])
        checks[name] = [round(share, 3), f"≥ {bound}", share >= bound]

    for way in PLAIN_WAYS:
        least(f"{way}, ≥ 20 words", table[way].get("≥ 20", (0, 0)), 0.99)
        least(f"{way}, 8-19 words", table[way].get("8-19", (0, 0)), 0.95)
    least("5 % edited, ≥ 20 words", table["5 % edited"]["≥ 20"], 0.9)
    least("every 10th word, ≥ 20 words", table["every 10th word"]["≥ 20"], 0.8)
    flags = sum(f.leaks + f.variants for f in other.values()) / sum(f.planted for f in other.values())
    checks["other half flagged"] = [round(flags, 4), "≤ 0.005", flags <= 0.005]
    checks["numbers changed, called leak"] = [changed[0], "= 0", changed[0] == 0]
    least("numbers changed, called variant", (changed[1], changed[2]), 0.9)
    checks["MB/s"] = [round(rate, 1), "≥ 50", rate >= 50]
    return checks


def checks_of_scale(scale: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what must hold with ten benchmarks of 50,000 items."""
    rate, load = scale["MB/s"], scale["load, CPU s"]
    return {
        f"MB/s with {scale['items']:,} items": [rate, "≥ 50", rate >= 50],
        f"CPU seconds to load {scale['items']:,} items": [load, "< 2", load < 2],
    }


def main(arguments: list[str] | None = None) -> int:
    """Print tables, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(CASES), default="small", help="how much (default: %(default)s)")
    parser.add_argument("--peers", action="store_true", help="measure other tools, too")
    parser.add_argument("--hits", action="store_true", help="print every finding in real texts and the other half")
    options = parser.parse_args(arguments)
    texts = corpus(BYTES[options.size])
    hosts = [text.split(" ") for text in texts.slice(0, 600).to_pylist() if len(text) > 200]
    decontaminate = Decontaminate(benchmarks())
    decontaminate.ready()
    for protected in decontaminate.protection():
        print(
            f"{protected.benchmark:12} {protected.items:5} items, {len(protected.joined):4} only with choices or "
            f"answer, not checked: {len(protected.short)} short, {len(protected.plain)} plain"
        )
    table = recall(CASES[options.size], hosts, decontaminate)
    print_recall(table)
    other, told = precision(hosts, 10 * CASES[options.size])
    for name, f in other.items():
        print(
            f"{name:12} other half: {f.leaks} leaks, {f.variants} variants of {f.planted}; "
            f"{f.twins_flagged} of {f.twins} twins"
        )
    changed = changed_items(hosts, decontaminate, 1000)
    print(f"GSM8K with other numbers: {changed[0]} leaks, {changed[1]} variants of {changed[2]}")
    real = gold_hits(decontaminate)
    for name, (count, hits, near) in real.items():
        print(f"{name}: {len(hits)} findings and {len(near)} near misses in {count} texts")
        if options.hits:
            print("\n".join([*hits, *near]))
    if options.hits:
        print("\n".join(["other half:", *told]))
    rate = corpus_hits(texts, decontaminate)
    scale = at_scale(options.size)
    print(f"{rate:.1f} MB/s; with more benchmarks: {json.dumps(scale)}")
    others = peers(hosts, texts, min(PEER_CASES, CASES[options.size])) if options.peers else {}
    found = sum(len(hits) for _, hits, _ in real.values())
    checks = checks_of(table, other, changed, rate) | checks_of_scale(scale)
    checks["found in real texts"] = [found, "= 0", found == 0]
    for check, (value, bound, holds) in checks.items():
        print(f"{check:45} {value:10} {bound:12} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "decontamination",
        "unit": "MB/s",
        "ours": round(rate, 1),
        "peers": {name: peer["MB/s"] for name, peer in others.items()},
        "recall of peers": others,
        "ratio": round(rate / max(peer["MB/s"] for peer in others.values()), 1) if others else None,
        "recall": {way: {c: [round(f / n, 4), n] for c, (f, n) in mine.items() if n} for way, mine in table.items()},
        "scale": scale,
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


def print_recall(table: Recall) -> None:
    """Print recall by way of writing and length class."""
    print(f"{'recall':26}{'≥ 20 words':>18}{'8-19 words':>18}{'listed':>16}")
    for way, classes in table.items():
        cells = [
            f"{f / n:.3f} of {n}" if n else "" for f, n in (classes.get(c, (0, 0)) for c in ("≥ 20", "8-19", "listed"))
        ]
        print(f"{way:26}{cells[0]:>18}{cells[1]:>18}{cells[2]:>16}")


if __name__ == "__main__":
    sys.exit(main())
