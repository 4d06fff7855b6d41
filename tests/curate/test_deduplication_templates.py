"""Templates in recipes: found exactly, left out of candidates and of similarity alike, recorded and shown."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from curate import Dataset as Described
from curate import Outputs, deduplicate, exchange, parts, read_jsonl
from curate.commands.templates import show_templates
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.deduplication import templates as counting
from curate.exchange import LIMITS
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, ledger, run_on, texts, tree, write_lines
from tests.transforms.test_duplicates import array
from transforms.minhash import MinHash, sets_of
from transforms.templates import TemplateRule

METHOD = MinHash(threshold="0.7", bands=60, rows=2)
RULE = TemplateRule(share=".2", least=3)
HEADER = "Permission is hereby granted free of charge to any person obtaining a copy of this software to deal in it"


def licensed(count: int = 30) -> list[str]:
    """Return texts of one header and a few own words: alike with the header, unlike without; and one again."""
    draw = random.Random(2)
    own = [" ".join(f"{draw.choice('abcdefgh')}{draw.randrange(9)}" for _ in range(3)) for _ in range(count)]
    return [f"{HEADER} by {text}" for text in own] + [f"{HEADER} by {own[0]}"] * 9


def plain(count: int = 12) -> list[str]:
    return [" ".join(f"p{number}x{word}" for word in range(30)) for number in range(count)]


@pytest.fixture
def sources(tmp_path: Path) -> list[Described]:
    """A source of licensed texts in three files, and one of texts of their own, one of which has the header."""
    for name, given in (("code", licensed()), ("web", [*plain(), f"{HEADER} by nobody at all"])):
        for number in range(3):
            lines = [{"text": text, "name": f"{number}-{n}"} for n, text in enumerate(given[number::3])]
            write_lines(tmp_path / "in" / name / f"{number}.jsonl", lines)
    return [read_jsonl(tmp_path / "in" / name, source=name, columns={"key": "name"}) for name in ("code", "web")]


def listed(dataset: Dataset) -> list[dict[str, Any]]:
    """Return what the list of templates says."""
    (file,) = [
        path
        for entry in dataset.manifest["inner"]
        for path in dataset.store.root.glob(f"shards/{entry['key'][:16]}/templates.parquet")
    ]
    return list(pq.read_table(file).to_pylist())


def test_templates_are_the_shingles_in_more_than_the_share_of_a_sources_distinct_texts(
    tmp_path: Path, sources: list[Described]
) -> None:
    made = run_on(
        Outputs(texts=deduplicate(*sources, method=METHOD, without_templates=RULE)), tmp_path / "store"
    ).outputs["texts"]
    expected = []
    for source, given in (("code", licensed()), ("web", [*plain(), f"{HEADER} by nobody at all"])):
        distinct = sorted(set(given))
        sets = sets_of(array(distinct), METHOD)
        counts = Counter(sets.values.tolist())
        least = max(3, int(len(distinct) * Fraction(1, 5)) + 1)
        found = [(source, len(distinct), shingle, count) for shingle, count in counts.items() if count >= least]
        expected += sorted(found, key=lambda row: (-row[3], row[2]))
    assert [tuple(row.values()) for row in listed(made)] == expected and len(expected) > 10
    assert made.statistics["templates"]["code"]["shingles"] == sum(row[0] == "code" for row in expected)
    assert made.statistics["templates"]["web"] == {**made.statistics["templates"]["web"], "shingles": 0}
    assert verify(tmp_path / "store").problems == []


def test_template_is_in_one_text_more_than_the_share(tmp_path: Path) -> None:
    phrases = ["exactly at the share here", "one more than the share"]
    given = [
        f"t{n} {' '.join(phrase for phrase, many in zip(phrases, (4, 5), strict=True) if n < many)} e{n}"
        for n in range(20)
    ]
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": text} for text in given])
    described = deduplicate(read_jsonl(tmp_path / "in", source="s"), method=METHOD, without_templates=RULE)
    found = listed(run_on(Outputs(texts=described), tmp_path / "store").outputs["texts"])
    wanted = sets_of(array([phrases[1]]), METHOD).values.tolist()
    assert [(row["shingle"], row["count"]) for row in found] == [(wanted[0], 5)]


def test_texts_are_alike_only_in_what_is_no_template(tmp_path: Path, sources: list[Described]) -> None:
    glued = run_on(Outputs(texts=deduplicate(*sources, method=METHOD)), tmp_path / "store").outputs["texts"]
    kept = run_on(
        Outputs(texts=deduplicate(*sources, method=METHOD, without_templates=RULE)), tmp_path / "store"
    ).outputs["texts"]
    assert glued.rows < 20 and kept.rows == 30 + 13
    assert {row["reason"] for row in ledger(kept)} == {"equal text"}


def test_verified_pairs_are_compared_on_the_sets_that_signatures_see(tmp_path: Path) -> None:
    """Of own words only one in ten differs: near duplicates still, by their own words alone."""
    own = [[f"w{number}x{word}" for word in range(60)] for number in range(20)]
    changed = [[*words[:30], "other", *words[31:]] for words in own[:4]]
    given = [f"{HEADER} by {' '.join(words)}" for words in (*own, *changed)]
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": text} for text in given])
    source = read_jsonl(tmp_path / "in", source="s")
    made = run_on(
        Outputs(texts=deduplicate(source, method=METHOD, without_templates=RULE)), tmp_path / "store"
    ).outputs["texts"]
    out = [row["shingle"] for row in listed(made)]
    sets = sets_of(array([given[0], given[20]]), METHOD)
    a, b = (set(sets.values[i:j].tolist()) - set(out) for i, j in itertools.pairwise(sets.offsets.tolist()))
    found = ledger(made)
    assert len(found) == 4 and {row["measure"] for row in found} == {"Jaccard similarity without templates"}
    assert (found[0]["numerator"], found[0]["denominator"]) == (len(a & b), len(a | b))


def test_templates_command_shows_passages_and_hides_what_may_not_be_shown(
    tmp_path: Path, sources: list[Described]
) -> None:
    code, web = sources
    write_lines(tmp_path / "in" / "h" / "a.jsonl", [{"text": f"{HEADER} secret {n}"} for n in range(5)])
    hidden = read_jsonl(tmp_path / "in" / "h", source="hidden", excerpts=False)
    described = deduplicate(code, web, hidden, method=METHOD, without_templates=RULE)
    lines = list(show_templates(run_on(Outputs(texts=described), tmp_path / "store"), count=1))
    assert lines[0] == "deduplicate: shingles in more than 0.2 of a source's texts, 3 at least"
    assert f"   in 30 texts: {HEADER} by" in lines
    place = next(number for number, line in enumerate(lines) if line.startswith("── hidden"))
    assert lines[place + 1] == "   (texts of this source may not be shown)"
    assert lines[-1] == "── web: 0 shingles are templates, of 13 distinct texts"
    plainly = run_on(Outputs(texts=deduplicate(web, method=METHOD)), tmp_path / "store")
    with pytest.raises(ConfigurationError, match="no stage of this result leaves templates out"):
        list(show_templates(plainly))


def test_templates_do_not_depend_on_pieces_or_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: list[Described]
) -> None:
    described = deduplicate(*sources, method=METHOD, without_templates=RULE)
    run_on(Outputs(texts=described), tmp_path / "1")
    monkeypatch.setattr(exchange, "LIMITS", replace(LIMITS, memory=3000))
    monkeypatch.setattr(parts, "BATCH_BYTES", 500)
    run_on(Outputs(texts=described), tmp_path / "2", ShuffledRunner(3))
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    monkeypatch.setattr(counting, "COUNTED_BYTES", 700)
    limits = replace(LIMITS, partition_bytes=3000, most_partitions=5, fan_in=2, memory=3000)
    monkeypatch.setattr(exchange, "LIMITS", limits)
    other = run_on(Outputs(texts=described), tmp_path / "3").outputs["texts"]
    (first,) = [made for made in run_on(Outputs(texts=described), tmp_path / "1").stages if made.name == other.name]
    assert listed(other) == listed(first) and texts(other) == texts(first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": None, "without_templates": 0.1}, "needs a method"),
        ({"without_templates": 1}, "a share between 0 and 1"),
        ({"without_templates": "much"}, "a finite number"),
    ],
)
def test_templates_that_cannot_be_found_are_refused(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    source = read_jsonl(tmp_path, source="s")
    with pytest.raises(ConfigurationError, match=message):
        deduplicate(source, **{"method": METHOD, **arguments})
