"""Groups: one document per source and value, its texts in order, whatever files, shards and partitions."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from blake3 import blake3

from curate import Column, Outputs, deduplicate, exchange, field, read_jsonl, tokenize
from curate import Dataset as Described
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.exchange import LIMITS
from curate.grouping.merge import RUN, MergeRuns
from curate.recipes.compiling import compile_stages
from curate.recipes.show import show_outputs
from curate.upkeep.compaction import Compact
from curate.upkeep.trace import replay, trace_token
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, ledger, run_on, texts, tree, write_lines
from tests.curate.token_corpus import write_tokenizer
from tests.transforms.documents import batch_of
from transforms.tokens import Tokenizer

Row = Mapping[str, Any]


def rows(count: int = 70, seed: int = 3) -> list[Row]:
    draw = random.Random(seed)
    return [
        {
            "name": f"n{number}",
            "repo": draw.choice(["a", "b", "b\0c", "ü", None]),
            "path": f"p{draw.randrange(40):02d}",
            "stars": None if number % 7 == 0 else number % 2,
            "text": f"{number} " + "x" * draw.randrange(40),
            "licence": draw.choice(["MIT", "ISC", "MIT OR ISC"]) if number % 5 else "MIT",
        }
        for number in range(count)
    ]


def read(root: Path, given: Sequence[Row], files: int, seed: int = 1, source: str = "s") -> Described:
    shuffled = list(given)
    random.Random(seed).shuffle(shuffled)
    for number in range(files):
        write_lines(root / source / f"{number}.jsonl", [dict(row) for row in shuffled[number::files]])
    columns = {"key": "name", "repo": "repo", "path": "path", "stars": Column("stars", "int64"), "licence": "licence"}
    return read_jsonl(root / source, source=source, columns=columns)


def by_definition(given: Sequence[Row]) -> list[str]:
    """Return the texts of all groups, sorted: files of a repository in the order of paths, then of text digests."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in given:
        groups[row["repo"] if row["repo"] is not None else row["name"], row["repo"] is None].append(row)
    ordered = (
        sorted(group, key=lambda row: (row["path"], blake3(row["text"].encode()).digest(16)))
        for group in groups.values()
    )
    return sorted("\n".join(row["text"] for row in group) for group in ordered)


def documents_of(dataset: Dataset) -> list[Row]:
    return [row for batch in dataset.batches() for row in batch.to_pylist()]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curate.recipes.compiling.Compact", lambda: Compact(target=1))
    limits = replace(LIMITS, partition_bytes=900, most_partitions=3, block_bytes=300, fan_in=2, memory=2000)
    monkeypatch.setattr(exchange, "LIMITS", limits)
    monkeypatch.setattr("curate.grouping.regrouping.BATCH_BYTES", 300)


@pytest.mark.usefixtures("small_pieces")
def test_groups_are_the_texts_of_one_value_in_order_whatever_the_files(tmp_path: Path) -> None:
    found = []
    for files in (1, 3, 6):
        grouped = read(tmp_path / str(files), rows(), files, seed=files).group("repo", order="path")
        result = run_on(Outputs(all=grouped), tmp_path / f"store{files}")
        found.append(texts(result.outputs["all"]))
        assert sorted(found[-1]) == by_definition(rows())
        assert verify(tmp_path / f"store{files}").problems == []
    assert found[0] == found[1] == found[2]


def test_first_document_of_a_group_stays_and_the_others_name_it(tmp_path: Path) -> None:
    source = read(tmp_path, rows(), 2)
    result = run_on(Outputs(before=source, all=source.group("repo", order="path")), tmp_path / "store")
    came = {row["id"]: row for row in documents_of(result.outputs["before"])}
    stays = {row["id"]: row for row in documents_of(result.outputs["all"])}
    into: dict[bytes, list[bytes]] = defaultdict(list)
    inserted: dict[bytes, int] = {}
    for row in ledger(result.outputs["all"]):
        assert (row["transform"], row["reason"]) == ("group", "merged")
        if row["kind"] == "dropped":
            into[bytes.fromhex(json.loads(row["evidence"])["into"])].append(row["id"])
        else:
            inserted[row["id"]] = row["inserted"]
            assert json.loads(row["evidence"]) == {"documents": len(into[row["id"]]) + 1} or row["kind"] == "edit"
    assert set(into) == set(inserted) <= set(stays)
    assert {identity for members in into.values() for identity in members} | set(stays) == set(came)
    for identity, members in into.items():
        first, merged = came[identity], stays[identity]
        assert {came[member]["repo"] for member in members} == {first["repo"]} != {None}
        assert all((first["path"], 0) <= (came[member]["path"], 0) for member in members)
        assert len(merged["text"]) == len(first["text"]) + inserted[identity]
        assert merged["text"].split("\n")[0] == first["text"]
        assert merged["origin"] == first["origin"] and merged["repo"] == first["repo"]
        stars = {came[member]["stars"] for member in (identity, *members)}
        assert merged["stars"] == (stars.pop() if len(stars) == 1 else None)


def test_sources_are_never_mixed(tmp_path: Path) -> None:
    one, two = (read(tmp_path, rows(60, seed), 1, source=name) for name, seed in (("one", 1), ("two", 2)))
    result = run_on(Outputs(all=deduplicate(one, two).group("repo")), tmp_path / "store")
    kept = documents_of(result.outputs["all"])
    assert len([row for row in kept if row["repo"] == "a"]) == 2
    assert {row["source"] for row in kept} == {"one", "two"}


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("largest", [1, 100])
def test_group_that_is_too_large_goes_on_in_another_document(tmp_path: Path, largest: int) -> None:
    one_repo = [{**row, "repo": "r"} for row in rows(40)]
    grouped = read(tmp_path, one_repo, 3).group("repo", order="path", largest=largest, separator="")
    found = texts(run_on(Outputs(all=grouped), tmp_path / "store").outputs["all"])
    ordered = by_definition(one_repo)[0].split("\n")
    parts, size = defaultdict[int, str](str), 0
    for text in ordered:
        parts[size // largest] += text
        size += len(text.encode())
    assert found == list(parts.values())
    assert len(found) == 40 if largest == 1 else 2 < len(found) < 30


@pytest.mark.usefixtures("small_pieces")
def test_grouping_has_the_same_files_in_any_order_of_tasks_and_does_nothing_when_run_again(tmp_path: Path) -> None:
    outputs = Outputs(all=read(tmp_path, rows(), 4).group("repo", order=("-stars", "path")))
    trees = []
    for number, runner in enumerate((None, ShuffledRunner(1), ShuffledRunner(2))):
        run_on(outputs, tmp_path / str(number), runner, chunk_rows=(4096, 5, 1)[number])
        trees.append(tree(tmp_path / str(number)))
    assert trees[0] == trees[1] == trees[2]
    run_on(outputs, tmp_path / "0")
    assert tree(tmp_path / "0") == trees[0]


def test_group_told_to_use_what_is_not_there_is_refused_before_any_work(tmp_path: Path) -> None:
    source = read(tmp_path, rows(3), 1)
    with pytest.raises(ConfigurationError, match="is told to use site; the documents have id, text"):
        compile_stages(Outputs(all=source.group("site")).products)
    with pytest.raises(ConfigurationError, match="is told to use size"):
        compile_stages(Outputs(all=source.group("repo", order="-size")).products)
    with pytest.raises(ConfigurationError, match="largest=0"):
        source.group("repo", largest=0)


def test_group_is_shown_and_its_documents_are_traced_but_not_replayed(tmp_path: Path) -> None:
    grouped = read(tmp_path, rows(), 2).group("repo", order="path")
    tokenizer = Tokenizer(write_tokenizer(tmp_path), bos=None, eos=None)
    outputs = Outputs(cells=tokenize(grouped, tokenizer))
    assert "group by repo, ordered by path" in show_outputs(outputs.products)
    result = run_on(outputs, tmp_path / "store")
    trace = trace_token(result.caches["cells"], "all", 3)
    with pytest.raises(ConfigurationError, match="makes one document of several records"):
        replay(compile_stages(outputs.products), trace)


def test_nothing_groups_to_nothing(tmp_path: Path) -> None:
    empty = read(tmp_path, rows(), 1).where(field("text") == "", reason="all")
    assert run_on(Outputs(all=empty.group("repo")), tmp_path / "store").outputs["all"].rows == 0


def test_rights_of_a_group_are_those_of_all_its_documents() -> None:
    batch = batch_of(["a", "b", "c", "d"])
    answers = [("no", "yes"), ("not checked", "no"), ("no", "no"), ("no", "no")]
    columns = {
        "licence": pa.array(["MIT", "ISC OR MIT", "MIT", "unknown"], pa.large_string()),
        "optout": pa.array(
            [{"robots_txt": one, "robots_meta": two, "tdm": "no"} for one, two in answers],
            batch.schema.field("optout").type,
        ),
    }
    for name, column in columns.items():
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, batch.schema.field(name), column)
    schema = batch.schema
    runs = batch.append_column(RUN, pa.array([1, 1, 2, 2]))
    first, second = MergeRuns(" ", schema).apply(runs).kept.to_pylist()
    assert (first["text"], first["licence"]) == ("a b", "(ISC OR MIT) AND MIT")
    assert first["optout"] == {"robots_txt": "not checked", "robots_meta": "yes", "tdm": "no"}
    assert (second["text"], second["licence"]) == ("c d", "unknown")
