"""Deduplication through the engine equals the sequential rule over all pairs, in memory, whatever the layout."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blake3 import blake3

from curate import Column, Outputs, deduplicate, exchange, field, fit_topics, hold_out, parts, read_jsonl, read_parquet
from curate import Dataset as Described
from curate.accounting.samples import PER_REASON, excerpt
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.deduplication import compare, components, plan, shingles
from curate.deduplication.shown import MOST
from curate.exchange import LIMITS
from curate.run import Result
from tests.curate.corpus import ledger, run_on, texts, tree, write_lines
from tests.transforms.test_duplicates import SHARED, array, brute_force_pairs, deduplicated, sequential_rule, variants
from tests.transforms.test_duplicates import corpus as in_memory
from transforms.minhash import MinHash, first_bands, sets_of

THOROUGH = MinHash(threshold="0.7", bands=60, rows=2)
"""Finds every pair at the threshold: 1 - (1 - .49)^60 > 1 - 10^-17."""

Row = Mapping[str, Any]

SMALL_PIECES = (
    (shingles, "TEXT_BYTES"),
    (shingles, "COPIED_SHINGLES"),
    (compare, "PAIRS_HELD"),
    (compare, "SHINGLES_HELD"),
)


@dataclass(frozen=True)
class Verdict:
    """Why a document goes: `reason`, the survivor, and their similarity."""

    reason: str
    survivor: bytes | None
    similarity: Fraction | None


def rows_of(*datasets: Dataset) -> list[Row]:
    return [row for dataset in datasets for batch in dataset.batches() for row in batch.to_pylist()]


def stages_named(result: Result, begin: str) -> list[Dataset]:
    """Return the stages whose names begin so."""
    return [stage for stage in result.stages if stage.name.startswith(begin)]


def verdicts(dataset: Dataset) -> dict[bytes, Verdict]:
    """Return id → verdict of the ledger of a deduplication."""
    found = {}
    for row in ledger(dataset):
        assert (row["kind"], row["transform"]) == ("dropped", "deduplicate")
        if row["reason"] == "empty text":
            found[row["id"]] = Verdict("empty text", None, None)
        else:
            survivor = bytes.fromhex(json.loads(row["evidence"])["survivor"])
            found[row["id"]] = Verdict(row["reason"], survivor, Fraction(row["numerator"], row["denominator"]))
    return found


def keep_order(rows: Sequence[Row], prefer: Sequence[str], sources: Sequence[str]) -> list[int]:
    """Return the rows from the first that would stay to the last, by the definition of `deduplicate`."""

    def criterion(row: Row, name: str) -> tuple[bool, Any]:
        column, largest_first = name.removeprefix("-"), name.startswith("-")
        values = {"source": sources.index(row["source"]), "length": len(row["text"])}
        value = values[column] if column in values else row[column]
        if value is None:
            return (True, 0)
        return (False, -value if largest_first else value)

    def key(number: int) -> tuple[Any, ...]:
        row = rows[number]
        last = (blake3(row["text"].encode()).digest(16), row["id"])
        return (*(criterion(row, name) for name in prefer), *last)

    return sorted(range(len(rows)), key=key)


def by_definition(
    rows: Sequence[Row], prefer: Sequence[str], sources: Sequence[str], within: str | None, method: MinHash | None
) -> dict[bytes, Verdict]:
    """Return id → verdict: equal texts first, then document after document in keep order, all pairs compared."""
    order = keep_order(rows, prefer, sources)
    group = {n: rows[n][within] if within else 0 for n in order}
    found = {rows[n]["id"]: Verdict("empty text", None, None) for n in order if not rows[n]["text"]}
    first: dict[tuple[Any, str], int] = {}
    equal: dict[int, int] = {}
    for n in order:
        if rows[n]["text"]:
            stays = first.setdefault((group[n], rows[n]["text"]), n)
            if stays != n:
                equal[n] = stays
    left = [n for n in order if rows[n]["text"] and n not in equal]
    near, pairs = _near(rows, left, group, method)
    for n, keeper in near.items():
        found[rows[n]["id"]] = Verdict("near duplicate", rows[keeper]["id"], pairs[min(n, keeper), max(n, keeper)])
    for n, stays in equal.items():
        later = found.get(rows[stays]["id"])
        found[rows[n]["id"]] = later or Verdict("equal text", rows[stays]["id"], Fraction(1))
    return found


def _near(
    rows: Sequence[Row], left: list[int], group: Mapping[int, Any], method: MinHash | None
) -> tuple[dict[int, int], dict[tuple[int, int], Fraction]]:
    if method is None:
        return {}, {}
    sets = sets_of(array([rows[n]["text"] for n in left]), method)
    plain = [set(sets.values[i:j].tolist()) for i, j in itertools.pairwise(sets.offsets.tolist())]
    local = brute_force_pairs(plain, method.ratio)
    pairs = {(min(left[a], left[b]), max(left[a], left[b])): value for (a, b), value in local.items()}
    pairs = {pair: value for pair, value in pairs.items() if group[pair[0]] == group[pair[1]]}
    return sequential_rule(left, pairs), pairs


def write_sources(root: Path, rows: Sequence[Row], files: int, seed: int = 1) -> tuple[Described, Described]:
    """Write `rows` as two sources, each in so many files, in some order, and return both."""
    draw = random.Random(seed)
    described = []
    for source in ("old", "new"):
        mine = [row for row in rows if row["source"] == source]
        draw.shuffle(mine)
        for number in range(files):
            write_lines(root / source / f"{number}.jsonl", [dict(row) for row in mine[number::files]])
        columns = {"group": "group", "stars": Column("stars", "int64"), "key": "name"}
        described.append(read_jsonl(root / source, source=source, columns=columns, ignore=("source",)))
    return described[0], described[1]


def documents(count: int = 160, seed: int = 5) -> list[Row]:
    """Return rows of two sources in groups, with families of near and equal texts and some empty ones."""
    draw = random.Random(seed)
    found = [*variants(count, seed), *variants(count, seed)[: count // 6], "", ""]
    return [
        {
            "name": f"n{number}",
            "text": text,
            "source": draw.choice(["old", "new"]),
            "group": draw.choice(["a", "b", None]),
            "stars": draw.choice([None, 1, 2, 30]),
        }
        for number, text in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("prefer", "within", "files"),
    [
        (("source",), None, 1),
        (("source",), None, 3),
        (("-length",), "group", 2),
        (("-stars", "length"), None, 2),
        (("stars", "source"), "group", 1),
        ((), None, 2),
    ],
)
def test_deduplication_equals_the_sequential_rule_over_all_pairs(
    tmp_path: Path, prefer: tuple[str, ...], within: str | None, files: int
) -> None:
    old, new = write_sources(tmp_path / "in", documents(), files)
    described = deduplicate(old, new, method=THOROUGH, prefer=prefer, within=within)
    result = run_on(Outputs(texts=described), tmp_path / "store")
    came = rows_of(*stages_named(result, "read "))
    expected = by_definition(came, prefer, ["old", "new"], within, THOROUGH)
    found = verdicts(result.outputs["texts"])
    assert found == expected
    stays = [row["id"] for row in rows_of(result.outputs["texts"])]
    assert stays == [row["id"] for row in came if row["id"] not in found]
    assert {verdict.survivor for verdict in found.values()} - {None} <= set(stays)
    assert sum(verdict.reason == "near duplicate" for verdict in found.values()) > 20
    assert sum(verdict.reason == "empty text" for verdict in found.values()) == 2


def test_no_two_survivors_reach_the_threshold_and_each_dropped_one_does_with_its_survivor(tmp_path: Path) -> None:
    old, new = write_sources(tmp_path / "in", documents(), 2)
    result = run_on(Outputs(texts=deduplicate(old, new, method=THOROUGH)), tmp_path / "store")
    came = {row["id"]: row["text"] for row in rows_of(*stages_named(result, "read "))}
    stays = {row["id"] for row in rows_of(result.outputs["texts"])}
    names = list(came)
    sets = sets_of(array([came[name] for name in names]), THOROUGH)
    of = {
        name: set(sets.values[i:j].tolist())
        for name, (i, j) in zip(names, itertools.pairwise(sets.offsets.tolist()), strict=True)
    }

    def similarity(a: bytes, b: bytes) -> Fraction:
        return Fraction(len(of[a] & of[b]), len(of[a] | of[b]))

    near = {identity: v for identity, v in verdicts(result.outputs["texts"]).items() if v.survivor is not None}
    for identity, verdict in near.items():
        assert verdict.survivor in stays
        if verdict.reason == "near duplicate":
            assert verdict.similarity == similarity(identity, verdict.survivor) >= THOROUGH.ratio
        else:
            assert came[identity] == came[verdict.survivor]
    assert all(similarity(a, b) < THOROUGH.ratio for a, b in itertools.combinations(sorted(stays), 2))
    gone = [v.survivor for v in near.values() if v.survivor and v.reason == "near duplicate"]
    chosen = sorted(set(gone))[:MOST]
    sampled = result.outputs["texts"].samples()
    survivors = {row["id"]: json.loads(row["evidence"]) for row in sampled if row["kind"] == "survivor"}
    assert survivors == {identity: {"documents": gone.count(identity)} for identity in chosen}
    pairs = [row for row in sampled if row["kind"] == "pair"]
    digests = sorted((row["text_digest"], row["id"]) for row in ledger(result.outputs["texts"]) if row["id"] in near)
    wanted = [i for _, i in digests if near[i].reason == "near duplicate" and near[i].survivor in chosen]
    assert len(chosen) == MOST and [row["id"] for row in pairs] == wanted[:PER_REASON]
    assert all(excerpt(came[row["id"]]) == row["excerpt"] for row in sampled if row["kind"] in ("pair", "survivor"))


def test_equal_text_of_a_near_duplicate_names_the_survivor_that_is_there(tmp_path: Path) -> None:
    text = " ".join(f"w{n}" for n in range(80))
    near = text.replace("w40", "v40")
    rows = [
        {"name": "first", "text": text, "source": "old"},
        {"name": "near", "text": near, "source": "new"},
        {"name": "near again", "text": near, "source": "new"},
    ]
    old, new = write_sources(tmp_path / "in", rows, 1)
    result = run_on(Outputs(texts=deduplicate(old, new, method=THOROUGH)), tmp_path / "store")
    (stays,) = rows_of(result.outputs["texts"])
    assert stays["text"] == text
    found = ledger(result.outputs["texts"])
    assert [(row["reason"], row["numerator"], row["denominator"], row["threshold"]) for row in found] == [
        ("near duplicate", 71, 81, "< 0.7")
    ] * 2
    evidence = [json.loads(row["evidence"]) for row in found]
    assert [entry["survivor"] for entry in evidence] == [stays["id"].hex()] * 2
    (equal_to,) = [entry["equal_to"] for entry in evidence if "equal_to" in entry]
    assert equal_to in {row["id"].hex() for row in found}
    band = first_bands(sets_of(array([text, near]), THOROUGH), np.array([0]), np.array([1]), THOROUGH).tolist()
    assert [entry["band"] for entry in evidence] == band * 2 and band[0] >= 0


def test_shingles_of_characters_are_signed_and_verified(tmp_path: Path) -> None:
    method = replace(THOROUGH, unit="character", ngram=12)
    old, new = write_sources(tmp_path / "in", documents(60), 1)
    result = run_on(Outputs(texts=deduplicate(old, new, method=method)), tmp_path / "store")
    expected = by_definition(rows_of(*stages_named(result, "read ")), ("source",), ["old", "new"], None, method)
    assert verdicts(result.outputs["texts"]) == expected
    assert sum(verdict.reason == "near duplicate" for verdict in expected.values()) > 5


def test_containment_drops_what_a_longer_text_holds(tmp_path: Path) -> None:
    words = [f"w{n}" for n in range(104)]
    rows = [
        {"name": "long", "text": " ".join(words), "source": "old"},
        {"name": "part", "text": " ".join(words[:64]), "source": "new"},
    ]
    old, new = write_sources(tmp_path / "in", rows, 1)
    by_containment = replace(THOROUGH, measure="containment")
    result = run_on(Outputs(texts=deduplicate(old, new, method=by_containment)), tmp_path / "store")
    (row,) = ledger(result.outputs["texts"])
    assert (row["measure"], row["numerator"], row["denominator"]) == ("containment", 60, 60)
    jaccard = run_on(Outputs(texts=deduplicate(old, new, method=THOROUGH)), tmp_path / "store")
    assert jaccard.outputs["texts"].rows == 2


@pytest.mark.parametrize("within", [None, "group"])
def test_exact_deduplication_collapses_equal_texts_only(tmp_path: Path, within: str | None) -> None:
    old, new = write_sources(tmp_path / "in", documents(), 2)
    described = deduplicate(old, new, within=within, prefer=("-source",) if within is None else ("source",))
    result = run_on(Outputs(texts=described), tmp_path / "store")
    came = rows_of(*stages_named(result, "read "))
    prefer = ("-source",) if within is None else ("source",)
    expected = by_definition(came, prefer, ["old", "new"], within, None)
    assert verdicts(result.outputs["texts"]) == expected
    assert {verdict.reason for verdict in expected.values()} == {"empty text", "equal text"}
    if within is None:
        assert len(set(texts(result.outputs["texts"]))) == result.outputs["texts"].rows


def test_deduplication_does_not_depend_on_files_or_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which text stays, and for which survivor each text goes, does not depend on where documents lie."""
    stays, goes = [], []
    for case, (files, partition_bytes) in enumerate([(1, 64 << 20), (4, 64 << 20), (3, 20_000), (2, 5_000)]):
        limits = replace(LIMITS, partition_bytes=partition_bytes, most_partitions=7, fan_in=3, memory=20_000)
        monkeypatch.setattr(exchange, "LIMITS", limits)
        old, new = write_sources(tmp_path / f"in{case}", documents(), files, seed=case)
        result = run_on(Outputs(texts=deduplicate(old, new, method=THOROUGH)), tmp_path / f"store{case}")
        text = {row["id"]: row["text"] for row in rows_of(*stages_named(result, "read "))}
        stays.append(sorted(texts(result.outputs["texts"])))
        goes.append(
            sorted(
                (text[identity], v.reason, text[v.survivor] if v.survivor else "", v.similarity or 0)
                for identity, v in verdicts(result.outputs["texts"]).items()
            )
        )
        inner = result.outputs["texts"].manifest["inner"]
        assert (len(inner) > 60) == (case >= 2)
    assert all(found == stays[0] for found in stays)
    assert all(found == goes[0] for found in goes)


def test_order_of_inputs_decides_who_stays(tmp_path: Path) -> None:
    rows = [{"name": "1", "text": "the same text", "source": source} for source in ("old", "new")]
    old, new = write_sources(tmp_path / "in", rows, 1)
    for inputs in ((old, new), (new, old)):
        result = run_on(Outputs(texts=deduplicate(*inputs)), tmp_path / "store")
        (row,) = rows_of(result.outputs["texts"])
        assert row["source"] == inputs[0].sources[0]


def test_source_whose_documents_all_go_leaves_receipts_without_parts(tmp_path: Path) -> None:
    rows = [{"name": "1", "text": "the same text", "source": source} for source in ("old", "new")]
    old, new = write_sources(tmp_path / "in", rows, 1)
    unique = deduplicate(old, new, method=THOROUGH)
    again = deduplicate(unique, method=THOROUGH, name="again")
    result = run_on(Outputs(texts=again), tmp_path / "store")
    (unique_made,) = stages_named(result, "deduplicate")
    shards = unique_made.shards()
    assert [(shard["rows"], shard["content"] is None) for shard in shards] == [(1, False), (0, True)]
    assert not (tmp_path / "store" / "shards" / shards[1]["key"][:16] / "part.parquet").exists()
    assert texts(result.outputs["texts"]) == ["the same text"] and len(result.outputs["texts"].shards()) == 1


def test_input_that_keeps_nothing_gives_an_empty_dataset(tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [b"\n", b"no json\n"])
    nothing = read_jsonl(tmp_path / "in", source="s")
    result = run_on(Outputs(texts=deduplicate(nothing, method=THOROUGH)), tmp_path / "store")
    assert (result.outputs["texts"].rows, result.outputs["texts"].manifest["shards"]) == (0, 0)
    assert result.outputs["texts"].statistics["duplicates"]["proposed"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"within": "site"}, "deduplicate is told to use site; the documents have id, text"),
        ({"prefer": ("-score",)}, "deduplicate is told to use score"),
        ({"max_removed": {"s": 1.5}}, "give a share 0 … 1"),
        ({"max_removed": {"other": 0.5}}, r"one of \['s'\]"),
    ],
)
def test_deduplication_told_to_use_what_is_not_there_is_refused_before_any_work(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": "x"}])
    with pytest.raises(ConfigurationError, match=message):
        run_on(Outputs(deduplicate(read_jsonl(tmp_path / "in", source="s"), **arguments)), tmp_path / "store")
    assert not (tmp_path / "store" / "shards").exists()


def test_deduplication_in_small_pieces_gives_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{"text": text} for text in variants(120, 5)]
    for name, mine in (("old", found[::2]), ("new", found[1::2])):
        write_lines(tmp_path / name / "a.jsonl", mine)
    sources = [read_jsonl(tmp_path / name, source=name) for name in ("old", "new")]  # pairs within shards and across
    trees = []
    for small in (False, True):
        if small:
            monkeypatch.setattr(exchange, "LIMITS", replace(LIMITS, memory=3000))
            monkeypatch.setattr(parts, "BATCH_BYTES", 900)
            for module, name in SMALL_PIECES:
                monkeypatch.setattr(module, name, 50)
        run_on(Outputs(deduplicate(*sources, method=THOROUGH)), tmp_path / str(small))
        trees.append(tree(tmp_path / str(small)))
    assert trees[0] == trees[1]
    assert sum(name.endswith(".exchange") for name in trees[0]) > 10


def test_deduplication_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least one dataset"):
        deduplicate()


@pytest.mark.parametrize(("prefer", "stay"), [(("-length",), 577), ((), 575)])
def test_licence_texts_through_the_engine_equal_the_rule_in_memory(
    tmp_path: Path, prefer: tuple[str, ...], stay: int
) -> None:
    """713 real licences; `tests.transforms.test_duplicates` compares the rule in memory with brute force."""
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    source = read_parquet(SHARED, "spdx_docs.parquet", source="spdx", columns={"key": "id"})
    result = run_on(Outputs(texts=deduplicate(source, method=MinHash(), prefer=prefer)), tmp_path)
    found, text = verdicts(result.outputs["texts"]), {row["id"]: row["text"] for row in rows_of(result.stages[0])}
    assert result.outputs["texts"].rows == stay
    names = list(text.values())
    memory = deduplicated(in_memory(names), MinHash(), prefer)
    gone = {n: names[keeper] for n, keeper in memory.keeper.items()}
    near = {text[identity]: text[v.survivor] for identity, v in found.items() if v.survivor and v.reason[0] == "n"}
    assert near == {names[n]: keeper for n, keeper in gone.items()}
    assert sorted(texts(result.outputs["texts"])) == sorted(
        name for n, name in enumerate(names) if n not in memory.keeper and n not in memory.exact
    )


def test_deduplicate_given_something_that_is_no_dataset_is_refused(tmp_path: Path) -> None:
    one = read_jsonl(tmp_path, source="one")
    with pytest.raises(ConfigurationError, match="compares datasets, got FittedModel"):
        deduplicate(one, fit_topics(one))  # type: ignore[arg-type]


def test_deduplicate_given_one_source_twice_is_refused(tmp_path: Path) -> None:
    one = read_jsonl(tmp_path, source="one")
    with pytest.raises(ConfigurationError, match="'one' comes in twice"):
        deduplicate(one, one.where(field("text") != "", reason="empty"))


@pytest.mark.parametrize("held_edges", [1, 40, 1 << 20])
def test_deciding_by_component_equals_deciding_on_all_edges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_edges: int
) -> None:
    old, new = write_sources(tmp_path / "in", documents(), 2)
    described = deduplicate(old, new, method=THOROUGH)
    whole = run_on(Outputs(texts=described), tmp_path / "whole").outputs["texts"]
    monkeypatch.setattr(plan, "MAX_COMPONENT_EDGES", 0)
    monkeypatch.setattr(plan, "HELD_EDGES", held_edges)
    small = replace(LIMITS, partition_bytes=20_000, most_partitions=7, fan_in=3, memory=20_000)
    monkeypatch.setattr(exchange, "LIMITS", small)
    monkeypatch.setattr(components, "EDGES_AT_ONCE", 5)
    parts = run_on(Outputs(texts=described), tmp_path / "parts").outputs["texts"]
    assert (parts.content, parts.manifest["ledger"]) == (whole.content, whole.manifest["ledger"])
    assert parts.statistics["duplicates"]["relinked"] > 0


@pytest.mark.parametrize("method", [THOROUGH, None])
def test_survivors_count_what_goes_because_of_them(tmp_path: Path, method: MinHash | None) -> None:
    old, new = write_sources(tmp_path / "in", documents(), 2)
    described = deduplicate(old, new, method=method, count="duplicates")
    made = run_on(Outputs(texts=described), tmp_path / "store").outputs["texts"]
    expected = Counter(verdict.survivor for verdict in verdicts(made).values())
    counts = {row["id"]: row["duplicates"] for row in rows_of(made)}
    assert counts == {identity: expected[identity] for identity in counts}
    assert sum(counts.values()) == len(ledger(made)) - 2 > 20  # two are empty


def test_tagging_keeps_all_documents_and_says_what_would_go(tmp_path: Path) -> None:
    old, new = write_sources(tmp_path / "in", documents(), 2)
    tag = deduplicate(old, new, method=THOROUGH, action="tag", count="copies")
    result = run_on(Outputs(texts=tag), tmp_path / "store")
    came, found = rows_of(*stages_named(result, "read ")), rows_of(result.outputs["texts"])
    assert [row["id"] for row in found] == [row["id"] for row in came] and not ledger(result.outputs["texts"])
    expected = by_definition(came, ("source",), ["old", "new"], None, THOROUGH)
    tagged = {row["id"]: json.loads(row["duplicate"]) for row in found if row["duplicate"] is not None}
    assert {
        identity: Verdict(
            tag["reason"],
            bytes.fromhex(tag["survivor"]) if "survivor" in tag else None,
            Fraction(tag["numerator"], tag["denominator"]) if "survivor" in tag else None,
        )
        for identity, tag in tagged.items()
    } == expected
    counts = Counter(verdict.survivor for verdict in expected.values())
    assert all(row["copies"] == counts[row["id"]] for row in found)
    assert "tagged" in result.outputs["texts"].manifest["operation"]["promises"][0]


def test_keeping_two_drops_what_resembles_two_that_stay(tmp_path: Path) -> None:
    old, new = write_sources(tmp_path / "in", documents(), 2)
    result = run_on(Outputs(texts=deduplicate(old, new, method=THOROUGH, keep=2)), tmp_path / "store")
    made = result.outputs["texts"]
    came = rows_of(*stages_named(result, "read "))
    order = keep_order(came, ("source",), ["old", "new"])
    why = verdicts(made)
    left = [n for n in order if came[n]["id"] not in why or why[came[n]["id"]].reason == "near duplicate"]
    sets = sets_of(array([came[n]["text"] for n in left]), THOROUGH)
    plain = [set(sets.values[i:j].tolist()) for i, j in itertools.pairwise(sets.offsets.tolist())]
    pairs = brute_force_pairs(plain, THOROUGH.ratio)
    staying: list[int] = []
    for place, n in enumerate(left):
        resembles = [other for other in staying if (other, place) in pairs]
        assert (came[n]["id"] in why) == (len(resembles) >= 2)
        if len(resembles) < 2:
            staying.append(place)
    assert sum(verdict.reason == "near duplicate" for verdict in why.values()) > 5
    assert len(made.manifest["operation"]["promises"]) == 1  # two that stay may be similar


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": "text"}, "to add the column 'text', which the documents have already"),
        ({"action": "tag", "count": "duplicate"}, "to add the column 'duplicate'"),
        ({"action": "remove"}, '"drop" or "tag"'),
        ({"keep": 2}, "more than 1 only with a method"),
        ({"keep": 0, "method": THOROUGH}, "a number from 1 on"),
    ],
)
def test_actions_that_cannot_be_done_are_refused_before_any_work(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": "x"}])
    with pytest.raises(ConfigurationError, match=message):
        run_on(Outputs(deduplicate(read_jsonl(tmp_path / "in", source="s"), **arguments)), tmp_path / "store")
    assert not (tmp_path / "store" / "shards").exists()


def test_large_bucket_keeps_what_is_preferred_whatever_the_layout(tmp_path: Path) -> None:
    """Copies of one page, each with a line of its own, in one split bucket: the first in keep order is the survivor."""
    page = " ".join(f"w{n}" for n in range(400))
    rows = [
        {
            "name": f"n{n}",
            "text": f"{page} line {n} of {n * n}",
            "source": "new" if n else "old",
            "stars": n % 7,
            "group": "a",
        }
        for n in range(60)
    ]
    method = replace(THOROUGH, cap=8)
    for case, files in enumerate((1, 4)):
        old, new = write_sources(tmp_path / f"in{case}", rows, files, seed=case)
        made = run_on(Outputs(texts=deduplicate(old, new, method=method, prefer=("-stars",))), tmp_path / f"out{case}")
        came, goes = rows_of(*stages_named(made, "read ")), verdicts(made.outputs["texts"])
        first = came[keep_order(came, ("-stars",), ["old", "new"])[0]]
        assert [row["id"] for row in rows_of(made.outputs["texts"])] == [first["id"]]
        assert {verdict.survivor for verdict in goes.values()} == {first["id"]} and len(goes) == 59
        assert made.outputs["texts"].statistics["duplicates"]["split_buckets"] > 0


def test_hold_out_refuses_a_measure_that_it_does_not_compare_by(tmp_path: Path) -> None:
    source = read_jsonl(tmp_path, source="s")
    with pytest.raises(ConfigurationError, match="by Jaccard similarity: leave measure='containment' out"):
        hold_out(source, documents=1, near_duplicates=MinHash(measure="containment"))
