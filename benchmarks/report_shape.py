"""A report of a large run, made up: as many cells, stages and reasons as asked, with sums that hold at any size.

    shape(cells=200, stages=50, reasons=1000, scale=1)

Ten sources go through chains of their own and then through stages that all share. Every reason has its samples, every
step its counts by language, script, country and length, and the last dataset 40 topics, levels, 1,024 hosts and a
mixture of as many caches as cells, each of ten sources, 100 languages and 60 licences. `scale` multiplies documents
and characters, and nothing else, so that two of them show whether a page grows with its corpus. Nothing is drawn at
random: the same arguments give the same report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from blake3 import blake3

from curate.accounting.kept import cell_name
from curate.accounting.samples import CELL, PER_CELL, PER_REASON
from curate.accounting.statistics import LENGTH_BINS, least
from curate.caches.description import Description
from mixtures.plan import Plan
from mixtures.plan_fields import Component, Segment
from mixtures.sequences import Chunks
from viewers.loading import ProductView, Report, StageView
from viewers.tokens import CellView

SOURCES: Final = tuple(f"source-{letter}" for letter in "abcdefghij")
LANGUAGES: Final = tuple(f"{first}{second}" for first in "abcdefghij" for second in "klmnopqrst")
SCRIPTS: Final = ("Latn", "Cyrl", "Arab", "Hani", "Deva", "Grek", "Hebr", "Thai", "Hang", "Kana")
MONTHS: Final = tuple(f"20{year}-{month:02d}" for year in range(14, 24) for month in range(1, 13))
LEVELS: Final = 5
CHARACTERS: Final = 2_000
"""Code points of a document."""
LOST: Final = 5
"""Documents that a source loses for one reason, at scale 1."""
BATCH: Final = 512
SENTENCE: Final = "the river ran under old bridges while small boats carried salt and timber to towns along its banks"
WORDS: Final = tuple(SENTENCE.split())

Counts = Mapping[str, int]


def shape(cells: int = 200, stages: int = 50, reasons: int = 1000, scale: int = 1) -> Report:
    """Return the report."""
    names = [f"{number:02d} stage" for number in range(stages)]
    per_stage = [reasons // stages + (number < reasons % stages) for number in range(stages)]
    own = stages - stages // 5
    chains = {source: [n for n in range(own) if n % len(SOURCES) == place] for place, source in enumerate(SOURCES)}
    there = dict.fromkeys(SOURCES, 0)
    for source, chain in chains.items():
        there[source] = scale * (10_000 + LOST * sum(per_stage[n] for n in [*chain, *range(own, stages)]))
    views: list[StageView] = []
    for number, name in enumerate(names):
        mine = [source for source, chain in chains.items() if number in chain] if number < own else list(SOURCES)
        before = [n for n in chains[mine[0]] if n < number][-1:] if number < own else [number - 1]
        before = [chain[-1] for chain in chains.values() if chain] if number == own else before
        came = {source: there[source] for source in mine}
        views.append(_stage(name, _inputs(names, before), came, per_stage[number], scale, number == stages - 1))
        for source in mine:
            there[source] -= scale * LOST * per_stage[number]
    last = views[-1]
    product, made = _caches(last, cells, scale)
    return Report(
        "large run", _key("recipe"), _key("content"), _key("digest"), {"documents": last}, tuple(views),
        (product,), tuple(made), None, _plan(made),
    )  # fmt: skip


def _key(name: str) -> str:
    return blake3(name.encode()).hexdigest()


def _inputs(names: list[str], before: list[int]) -> list[dict[str, str]]:
    return [{"name": names[n], "key": _key(names[n]), "digest": _key(names[n])} for n in before]


def _stage(name: str, inputs: list[dict[str, str]], came: Counts, reasons: int, scale: int, is_last: bool) -> StageView:
    went = scale * LOST
    kept = {source: documents - went * reasons for source, documents in came.items()}
    rows = sum(kept.values())
    step = {
        "name": f"Filter of {name}",
        "sources": {source: _flow(name, documents, reasons, went) for source, documents in came.items()},
        "spread": _spread(name, sum(came.values()), reasons, went * len(came)),
    }
    statistics: dict[str, Any] = {
        "steps": {"00": step},
        "who": {"steps": {"00": {"by": _who(sum(came.values()), went * reasons * len(came))}}},
        "groups": {"source": {source: _counts(documents) for source, documents in kept.items()}},
        "rights": {source: {"CC-BY-4.0": {"source": _counts(documents)}} for source, documents in kept.items()},
        "optout": {source: {s: {"no": n} for s in ("robots_txt", "tdm")} for source, n in kept.items()},
        "texts": {"count": rows, "multiset": {"sum": "0" * 64}},
    }
    if not inputs:
        statistics["reading"] = {source: _reading(documents) for source, documents in came.items()}
    if is_last:
        statistics |= {"hosts": _hosts(rows), "cells": {"quality_level": _grid(rows)}}
        months = [n // 4 for n in kept.values()]
        statistics["crawled"] = {s: _in_months(n) for s, n in zip(kept, months, strict=True)}
    filter_ = {"class": "Filter", "version": 1, "fields": {"threshold": {"decimal": "0.5"}, "words": list(WORDS)}}
    manifest = {
        "name": name,
        "key": _key(name),
        "operation": {
            "operation": "documents",
            "reader": None,
            "steps": [{"name": step["name"], "transform": filter_}],
        },
        "inputs": inputs,
        "schema": [["id", "binary16"], ["text", "string"], ["source", "string"], ["url", "string"]],
        "shards": 1000,
        "rows": rows,
        "content": _key(f"content {name}"),
        "ledger": _key(f"ledger {name}"),
        "digest": _key(f"digest {name}"),
        "texts": {"count": rows, "multiset": {"sum": "0" * 64}},
        "quarantine": None,
    }
    samples = (*_samples(name, reasons), *(_of_cells() if is_last else ()))
    return StageView(manifest, statistics, samples, 1000, rows)


def _counts(documents: int) -> dict[str, int]:
    return {"documents": documents, "characters": documents * CHARACTERS}


def _reading(documents: int) -> dict[str, Any]:
    size = documents * CHARACTERS
    return {"records": {"read": {"count": documents, "stored": size}}, "total": {"stored": size}}


def _flow(name: str, came: int, reasons: int, went: int) -> dict[str, Any]:
    out = came - reasons * went
    dropped = {f"reason {number} of {name}": _counts(went) for number in range(reasons)}
    near = {reason: {"documents": went} for reason in dropped}
    step = f"Filter of {name}"
    return {
        "documents_in": came,
        "documents_out": out,
        "characters_in": came * CHARACTERS,
        "characters_out": out * CHARACTERS,
        "dropped": {step: dropped},
        "near": {step: near},
    }


def _spread(name: str, came: int, reasons: int, went: int) -> dict[str, Any]:
    """Return for each reason how far from its threshold documents are: those that go lie below it."""
    rules: dict[str, Any] = {}
    for number in range(reasons):
        below, above = _parts(went, [1, 2, 3, 4]), _parts(came - went, [5, 4, 3, 2, 1])
        counts = {str(place): documents for place, documents in enumerate([*below, *above])}
        rules[f"reason {number} of {name}"] = {f"measure {number}": {"≥ 0.5": counts}}
    return {f"Filter of {name}": rules}


def _in_months(documents: int) -> dict[str, int]:
    return dict(zip(MONTHS, _parts(documents, [n + 1 for n in range(len(MONTHS))]), strict=True))


def _who(came: int, lost: int) -> dict[str, Any]:
    values = {"language": LANGUAGES, "script": SCRIPTS, "country domain": LANGUAGES[:60], "length": LENGTH_BINS}
    values["crawl month"] = MONTHS
    return {name: {"values": least(_by(found, came, lost), 256)} for name, found in values.items()}


def _by(values: tuple[str, ...], came: int, lost: int) -> dict[str, dict[str, int]]:
    """Return parts of both numbers that grow along `values`, and of those lost faster, and add up."""
    weights = [place + 1 for place in range(len(values))]
    squares = [weight * weight for weight in weights]
    ins, outs = _parts(came, weights), _parts(lost, squares)
    return {v: {"documents": n, "dropped": min(gone, n)} for v, n, gone in zip(values, ins, outs, strict=True)}


def _parts(number: int, weights: list[int]) -> list[int]:
    total, taken, found = sum(weights), 0, []
    for place in range(len(weights)):
        end = number * sum(weights[: place + 1]) // total
        found.append(end - taken)
        taken = end
    return found


def _hosts(rows: int) -> dict[str, Any]:
    names = [f"host-{number}.example" for number in range(2000)]
    counts = {name: _counts(n) for name, n in zip(names, _parts(rows, [n + 1 for n in range(2000)]), strict=True)}
    drawn = {_key(name): {"name": name, "documents": 1} for name in names[-512:]}
    return {"most": least(counts), "drawn": {"least": drawn, "k": 512}, "distinct": {"hll": "03" * 4096}}


def _grid(rows: int, topics: int = 40) -> dict[str, Any]:
    amounts = iter(_parts(rows, [1 + (7 * n) % 23 for n in range(topics * LEVELS)]))
    return {
        f"topic {topic}": {str(level): _counts(next(amounts)) for level in range(LEVELS)} for topic in range(topics)
    }


def _samples(name: str, reasons: int) -> Iterator[dict[str, Any]]:
    for number in range(reasons):
        for kind in ("dropped", "near miss"):
            for place in range(PER_REASON):
                yield _sample(kind, f"Filter of {name}", f"reason {number} of {name}", place)


def _of_cells(topics: int = 40) -> Iterator[dict[str, Any]]:
    for number in range(topics * LEVELS):
        for place in range(PER_CELL):
            reason = cell_name(f"topic {number // LEVELS}", number % LEVELS, "quality_level")
            yield _sample(CELL, "quality_level", reason, place)


def _sample(kind: str, transform: str, reason: str, place: int) -> dict[str, Any]:
    identity = blake3(f"{transform} {reason} {kind} {place}".encode()).digest(16)
    turn = identity[0] % len(WORDS)
    text = " ".join([*WORDS[turn:], *WORDS[:turn]] * 14)[: 300 + 5 * identity[1]]
    measured = kind != CELL
    return {
        "kind": kind,
        "transform": transform,
        "reason": reason,
        "text_digest": identity,
        "id": identity,
        "source": SOURCES[0],
        "origin": {"uri": "a.jsonl", "place": "stored", "offset": place, "length": 9, "part": 0},
        "url": f"https://host-{place}.example/{identity[2]}",
        "measure": "words" if measured else None,
        "numerator": 21 if measured else None,
        "denominator": 62 if measured else None,
        "threshold": "≥ 50" if measured else None,
        "evidence": None,
        "characters": len(text),
        "excerpt": text,
        "after": None,
        **dict.fromkeys(("licence", "language", "topic", "levels")),
    }


def _caches(last: StageView, cells: int, scale: int) -> tuple[ProductView, list[CellView]]:
    names = [f"topic=topic {n // LEVELS}/quality_level={n % LEVELS}" for n in range(cells)]
    documents = _parts(last.manifest["rows"], [1 + (7 * n) % 23 for n in range(cells)])
    made = [_cell(last, name, n) for name, n in zip(names, documents, strict=True)]
    entries = {
        cell.cell: {"folder": "", "tokens": cell.description.tokens, "documents": cell.description.documents}
        for cell in made
    }
    manifest = {
        "name": "tokenize",
        "key": _key("tokenize"),
        "kind": "caches",
        "operation": {"operation": "tokenize", "class": "Cells", "fields": {"by": ["topic", "quality_level"]}},
        "inputs": [{"name": last.name, "key": last.key, "digest": last.key}],
        "cells": entries,
        "content": _key("caches"),
    }
    return ProductView(manifest), made


def _cell(last: StageView, name: str, documents: int) -> CellView:
    tokens = documents * CHARACTERS // 4
    by = {name_: _values(documents, values) for name_, values in _kinds(name).items()}
    size = documents * CHARACTERS
    statistics: dict[str, Any] = {"characters": size, "bytes": size, "unknown": 0, "by": by}
    dataset = {"name": last.name, "key": last.key, "content": last.manifest["content"]}
    description = Description(
        name, _key(name), dataset, _key("tokenizer"), None, "</s>", None, 0, (0,), 50_000, "tokenizers 0.0", "a", (1,),
        "uint16", tokens, documents, _key(f"content {name}"), {}, {}, {}, statistics,
    )  # fmt: skip
    return CellView("training", ("tokenize", _key("tokenize")), (last.name, last.key), name, description)


def _kinds(cell: str) -> dict[str, tuple[str, ...]]:
    """Return the values that the documents of a cell have, of each column."""
    topic, level = cell.removeprefix("topic=").split("/quality_level=")
    licences = tuple(f"LicenseRef-{number}" for number in range(60))
    mixed = {"source": SOURCES, "language": LANGUAGES, "licence": licences}
    return {**mixed, "topic": (topic,), "quality_level": (level,)}


def _values(documents: int, values: tuple[str, ...]) -> dict[str, Any]:
    parts = zip(values, _parts(documents, [place + 1 for place in range(len(values))]), strict=True)
    counts = {value: {"documents": n, "tokens": n * CHARACTERS // 4} for value, n in parts if n}
    whole = {"documents": documents, "tokens": documents * CHARACTERS // 4}
    return {"all": whole, "values": least(counts, 256)}


def _plan(made: list[CellView]) -> Plan:
    length = 4096
    parts = tuple(
        Component(c.cell, c.description.content, c.description.tokens, -(-c.description.tokens // length))
        for c in sorted(made, key=lambda cell: cell.cell)
    )
    segments = []
    for phase in ("main", "anneal"):
        weights = {part.name: 1 + len(part.name + phase) % 7 for part in parts}
        total = BATCH * (1000 if phase == "main" else 100)
        counts = dict(zip(weights, _parts(total, list(weights.values())), strict=True))
        segments.append(Segment(phase, total * length, weights, counts, total, total))
    return Plan(7, BATCH, Chunks(length), _key("tokenizer"), 50_000, 0, parts, tuple(segments))
