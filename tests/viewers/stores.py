"""Stores and reports for the tests: one that the engine makes of hostile texts, and made-up ones of any shape."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from curate import Column, Outputs, deduplicate, field, read_jsonl
from curate.run import Result, run
from transforms.gopher_rules import GopherQuality
from transforms.minhash import MinHash
from transforms.pii import MaskPII
from transforms.user_function import EditText
from viewers.loading import Report, StageView

HOSTILE = (
    "<script>alert(1)</script>",
    "</style></title></textarea><!-- --><svg onload=alert(1)>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1) http://evil.example/?a=1&amp;b=2",
    "\u202eover\u2066ride\u2069 \u200fmark",
    "nul\x00 bell\x07 escape\x1b[31m delete\x7f",
    "line\u2028paragraph\u2029 next\x85",
    "\ufeffmark \U000e0041tag \ufffe",
    "zalgo" + "\u0301" * 500,
    "]]>&lt;b&gt;&#60;i&#62;",
)
"""Texts that would run, load, hide or reorder something if a page put them out as they are."""

SENTENCE = "the quick brown fox jumps over a lazy dog and then the dog sleeps with its head on the old wooden chair"
WORDS = SENTENCE.split()


@dataclass(frozen=True)
class Made:
    """A store with a committed result."""

    root: Path
    folder: str
    result: Result


def words(seed: int, count: int) -> str:
    """Return `count` words that follow from `seed`."""
    return " ".join(choice.choice(WORDS) for choice in [random.Random(seed)] for _ in range(count))


def make_store(folder: Path) -> Made:
    """Run a recipe over two sources: hostile texts, near duplicates, addresses, licences, broken lines."""
    long = [f"{words(i, 70 + i)} number {i} {HOSTILE[i % len(HOSTILE)]}" for i in range(40)]
    near = [f"{text} and one more" for text in long[:6]]
    short = [f"{text} {i}" for i, text in enumerate(HOSTILE)]
    mail = [f"{words(i, 60)} write  to someone{i}@example.org now" for i in range(4)]
    crawl = [*long, *long[:3], *short, "", *mail]
    _write(
        folder / "crawl/a.jsonl",
        [{"text": text, "url": f"http://h{i % 5}.example/<b>{i}"} for i, text in enumerate(crawl)],
    )
    (folder / "crawl/b.jsonl").write_bytes(b'broken\n\n{"text": "never closed\n')
    shelf = [
        {"text": text, "licence": ("MIT", '"><b>', "GPL-3.0")[i % 3]} for i, text in enumerate([*near, *long[30:36]])
    ]
    _write(folder / "shelf/a.jsonl", shelf)
    store = folder / "store"
    result = run(recipe(folder), store, name="<b>hostile & co</b>", runner="local")
    return Made(store, result.folder.name, result)


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def tidy(text: str) -> str:
    """Return `text` with double spaces made single."""
    return text.replace("  ", " ")


def recipe(folder: Path) -> Outputs:
    """Return the recipe of `make_store`."""
    crawl = read_jsonl(folder / "crawl", source='crawl"><script>', columns={"url": Column("url")})
    crawl = crawl.apply(
        EditText(tidy, "white\u202espace<", version=1),
        GopherQuality(min_words=30).all_reasons(),
        MaskPII(),
        name="<i>crawl",
    )
    shelf = read_jsonl(folder / "shelf", source="shelf", columns={"licence": "licence"}, excerpts=False)
    shelf = shelf.where(field("licence").isin(["MIT", '"><b>']), reason="licence </td>")
    both = deduplicate(shelf, crawl, method=MinHash(threshold=".7"), max_removed={"shelf": 0.9})
    return Outputs(**{"docs <&>": both})


def stage(name: str = "stage", key: str = "", **changes: Any) -> StageView:
    """Return a made-up stage; `changes` replace fields of its manifest, statistics and the rest."""
    manifest = {
        "name": name,
        "key": (key or name.encode().hex()).ljust(64, "0")[:64],
        "operation": {"operation": "documents", "reader": None, "steps": []},
        "inputs": [],
        "schema": [["id", "binary16"], ["text", "string"]],
        "shards": 1,
        "rows": 0,
        "content": "c" * 64,
        "ledger": "d" * 64,
        "digest": "e" * 64,
        "texts": {"count": 0, "multiset": {"sum": "0" * 64}},
        "quarantine": None,
    }
    manifest.update(changes.pop("manifest", {}))
    rows = manifest["rows"]
    manifest["texts"] = {"count": rows, "multiset": {"sum": "0" * 64}}
    statistics = {"texts": {"count": rows}, **changes.pop("statistics", {})}
    return replace(StageView(manifest, statistics, (), 1, rows), **changes)


def report(*stages: StageView, name: str = "recipe") -> Report:
    """Return a made-up report whose output is the last of `stages`."""
    return Report(name, "a" * 64, "b" * 64, "f" * 64, {"docs": stages[-1]}, tuple(stages))


def sample(text: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a made-up sample of a dropped document."""
    row = {
        "kind": "dropped",
        "transform": "GopherQuality",
        "reason": "too few words",
        "text_digest": number.to_bytes(16, "big"),
        "id": number.to_bytes(16, "little"),
        "source": "web",
        "origin": {"uri": "a.jsonl", "place": "stored", "offset": 7, "length": 9, "part": 0},
        "url": None,
        "measure": "words",
        "numerator": 21,
        "denominator": 62,
        "threshold": "≥ 50",
        "evidence": None,
        "characters": len(text),
        "excerpt": text,
        "after": None,
        **dict.fromkeys(("licence", "language", "topic", "levels")),
    }
    return {**row, **changes}


def documents(source: str, count: int, **more: Any) -> dict[str, Any]:
    """Return statistics of a stage that keeps `count` documents of 10 characters of one source."""
    group = {"documents": count, "characters": 10 * count}
    rights = {source: {"unknown": {"unknown": group}}}
    optout = {source: {"tdm": {"not checked": count}}}
    return {"groups": {"source": {source: group}}, "rights": rights, "optout": optout, **more}


def hostile_stage(name: str, number: int) -> StageView:
    """Return a stage in which every string that can come from data is `name`."""
    counted = {"documents": 3, "characters": 9}
    step = {
        "documents_in": 6,
        "documents_out": 3,
        "characters_in": 18,
        "characters_out": 9,
        "dropped": {name: {name: counted}},
        "edits": {name: {"documents": 1, "cut": 0, "inserted": 0}},
        "near": {name: {name: {"documents": 2}}},
        "overlap": {name: {"pairs": {name: {name: {"documents": 3}}}, "alone": {name: {"documents": 3}}}},
    }
    samples = [
        sample(name[:1600], n, kind=kind, transform=name, reason=name, source=name, url=name, measure=name)
        | {"threshold": name, "evidence": evidence, "origin": {"uri": name, "place": name, "offset": 1, "length": 1}}
        | {"after": None if kind != "edited" else name[:1600][::-1]}
        for n, (kind, evidence) in enumerate(
            [("dropped", name), ("near miss", '{"a":[[1,2]]}'), ("edited", "[[1,2]]"), ("kept", None)]
        )
    ]
    return stage(
        name,
        key=f"{number:08x}",
        statistics={
            "groups": {"source": {name: counted}, "licence": {name: counted}},
            "rights": {name: {name: {name: counted}}},
            "optout": {name: {name: {name: 3}}},
            "reading": {name: {"records": {"read": {"count": 6, name: 6}}, "total": {name: 6}}},
            "steps": {"00": {"name": name, "sources": {name: step}}},
            "hosts": {"most": {"least": {"0": {"name": name, **counted}}, "k": 1}, "distinct": {"hll": "00" * 4096}},
        },
        manifest={
            "rows": 3,
            "schema": [["text", "string"], [name, name]],
            "operation": {
                "operation": "documents",
                "reader": {"class": name, "fields": {"source": name, name: [name, {"decimal": name}]}},
                "steps": [{"name": name, "transform": {"class": name, "version": name, "libraries": {name: name}}}],
            },
        },
        samples=tuple(samples),
    )
