"""Near duplicates of a frozen reference: what arrives later is left with what it would have been left with at once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from curate import Column, Outputs, deduplicate, exchange, read_jsonl, reference
from curate import Dataset as Described
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.deduplication import plan
from curate.exchange import LIMITS
from curate.recipes.reference import Reference
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, ledger, run_on, texts, tree, write_lines
from tests.curate.test_deduplication import THOROUGH, documents
from tests.transforms.test_duplicates import array
from transforms.minhash import MinHash, sets_of

Row = Mapping[str, Any]


def read(root: Path, rows: Sequence[Row], source: str, files: int = 2) -> Described:
    for number in range(files):
        write_lines(root / source / f"{number}.jsonl", [dict(row) for row in rows[number::files]])
    columns = {"group": "group", "stars": Column("stars", "int64"), "key": "name"}
    return read_jsonl(root / source, source=source, columns=columns, ignore=("source",))


@pytest.fixture
def arrivals(tmp_path: Path) -> list[Described]:
    """Three deliveries, with families of near and equal texts across them."""
    rows = documents(90)
    return [read(tmp_path / "in", rows[first::3], source) for first, source in enumerate(("one", "two", "three"))]


def made(described: Described, store: Path) -> Dataset:
    return run_on(Outputs(texts=described), store).outputs["texts"]


def of(store: Path) -> Reference:
    return reference(store, "deduplicate")


@pytest.mark.parametrize(("within", "prefer"), [(None, ("source",)), ("group", ("source", "-stars"))])
def test_deduplication_delivery_by_delivery_equals_all_at_once(
    tmp_path: Path, arrivals: list[Described], within: str | None, prefer: tuple[str, ...]
) -> None:
    one, two, three = arrivals
    options: dict[str, Any] = {"method": THOROUGH, "within": within, "prefer": prefer}
    at_once = made(deduplicate(one, two, three, **options), tmp_path / "all")
    first = made(deduplicate(one, **options), tmp_path / "1")
    second = made(deduplicate(two, **options, against=of(tmp_path / "1")), tmp_path / "2")
    both = [of(tmp_path / "1"), of(tmp_path / "2")]
    third = made(deduplicate(three, **options, against=both), tmp_path / "3")
    assert texts(at_once) == [*texts(first), *texts(second), *texts(third)]
    goes = ledger(second) + ledger(third)
    assert {row["reason"] for row in goes} == {"equal text", "near duplicate", "empty text"}
    assert sum('"reference":"deduplicate"' in (row["evidence"] or "") for row in goes) > 10
    assert verify(tmp_path / "3").problems == []


def test_document_that_goes_names_a_survivor_of_the_reference_or_of_its_stage(
    tmp_path: Path, arrivals: list[Described]
) -> None:
    one, two, _ = arrivals
    first = made(deduplicate(one, method=THOROUGH), tmp_path / "1")
    result = run_on(Outputs(before=two, texts=deduplicate(two, method=THOROUGH, against=of(tmp_path / "1"))), tmp_path)
    second = result.outputs["texts"]
    known = {"reference": _texts_by_id(first), "own": _texts_by_id(second)}
    came = _texts_by_id(result.outputs["before"])
    found = [row for row in ledger(second) if row["reason"] != "empty text"]
    for row in found:
        evidence = json.loads(row["evidence"])
        survivor = known["reference" if "reference" in evidence else "own"][bytes.fromhex(evidence["survivor"])]
        sets = sets_of(array([came[row["id"]], survivor]), THOROUGH)
        a, b = (set(sets.values[i:j].tolist()) for i, j in itertools.pairwise(sets.offsets.tolist()))
        similarity = (len(a & b), len(a | b)) if row["reason"] == "near duplicate" else (1, 1)
        assert (row["numerator"], row["denominator"]) == similarity
    assert second.manifest["operation"]["promises"][0].endswith(
        "a survivor of this stage or a reference with equal text or similarity at the threshold"
    )


def _texts_by_id(dataset: Dataset) -> dict[bytes, str]:
    return {row["id"]: row["text"] for batch in dataset.batches() for row in batch.to_pylist()}


def test_frozen_documents_always_stay_even_if_they_resemble_each_other(tmp_path: Path) -> None:
    text = " ".join(f"w{n}" for n in range(80))
    pair = [{"name": "a", "text": text}, {"name": "b", "text": text.replace("w40", "v40")}]
    made(deduplicate(read(tmp_path / "in", pair, "old"), name="deduplicate"), tmp_path / "1")
    chain = [{"name": "c", "text": text.replace("w60", "v60")}, {"name": "d", "text": text.replace("w20", "v20")}]
    options: dict[str, Any] = {"method": THOROUGH, "against": of(tmp_path / "1"), "count": "copies"}
    new = made(deduplicate(read(tmp_path / "in", chain, "new"), **options), tmp_path / "2")
    assert new.rows == 0 and len(ledger(new)) == 2
    keeps_two = made(deduplicate(read(tmp_path / "in", chain, "new"), **options, keep=3), tmp_path / "2")
    assert keeps_two.rows == 1 and len(ledger(keeps_two)) == 1  # both frozen ones, and one more


@pytest.mark.parametrize("held_edges", [None, 1])
def test_document_goes_for_a_frozen_one_that_another_frozen_one_resembles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held_edges: int | None
) -> None:
    """Of a chain a ~ b ~ c both a and b are frozen: c goes for b, whichever of them comes first."""
    words = [f"w{n}" for n in range(80)]
    chain = [" ".join([*(f"v{n}" for n in range(3 * step)), *words[3 * step :]]) for step in range(5)]
    if held_edges is not None:
        monkeypatch.setattr(plan, "MAX_COMPONENT_EDGES", 0)
        monkeypatch.setattr(plan, "HELD_EDGES", held_edges)
    frozen = [{"name": f"n{step}", "text": text} for step, text in enumerate(chain[:4])]
    made(deduplicate(read(tmp_path / "in", frozen, "old")), tmp_path / "1")
    method = replace(THOROUGH, threshold=".8")
    new = read(tmp_path / "in", [{"name": "c", "text": chain[4]}], "new")
    found = made(deduplicate(new, method=method, against=of(tmp_path / "1")), tmp_path / "2")
    assert found.rows == 0 and found.statistics["duplicates"]["edges"] == 1


@pytest.mark.parametrize("method", [THOROUGH, None])
def test_deduplication_against_a_reference_does_not_depend_on_partitions_or_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrivals: list[Described], method: MinHash | None
) -> None:
    one, two, _ = arrivals
    made(deduplicate(one), tmp_path / "1")
    described = deduplicate(two, method=method, against=of(tmp_path / "1"))
    run_on(Outputs(texts=described), tmp_path / "2", ShuffledRunner(2))
    whole = made(described, tmp_path / "3")
    assert tree(tmp_path / "2") == tree(tmp_path / "3")
    monkeypatch.setattr(plan, "MAX_COMPONENT_EDGES", 0)
    monkeypatch.setattr(plan, "HELD_EDGES", 1)
    small = replace(LIMITS, partition_bytes=20_000, most_partitions=7, fan_in=3, memory=20_000)
    monkeypatch.setattr(exchange, "LIMITS", small)
    parts = made(described, tmp_path / "4")
    assert (parts.content, parts.manifest["ledger"]) == (whole.content, whole.manifest["ledger"])


def test_large_bucket_of_documents_and_a_reference_keeps_the_frozen_one(tmp_path: Path) -> None:
    page = " ".join(f"w{n}" for n in range(400))
    rows = [{"name": f"n{n}", "text": f"{page} line {n} of {n * n}", "stars": n % 7} for n in range(60)]
    method = replace(THOROUGH, cap=8)
    made(deduplicate(read(tmp_path / "in", rows[30:31], "old"), method=method), tmp_path / "1")
    new = read(tmp_path / "in", rows[:30], "new")
    found = made(deduplicate(new, method=method, against=of(tmp_path / "1"), prefer=("-stars",)), tmp_path / "2")
    assert found.rows == 0 and found.statistics["duplicates"]["split_buckets"] > 0


def test_reference_without_the_column_of_within_is_refused_when_the_recipe_is_called(tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": "x"}])
    source = read_jsonl(tmp_path / "in", source="s")
    made(deduplicate(source), tmp_path / "1")
    with pytest.raises(ConfigurationError, match="'deduplicate' has no such column"):
        deduplicate(source, within="site", against=of(tmp_path / "1"))
