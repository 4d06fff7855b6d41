"""Joins by id: each document gets the columns of the one row that has its id, whatever shards and partitions."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from curate import Column, Outputs, deduplicate, exchange, field, read_jsonl, tokenize
from curate import Dataset as Described
from curate.accounting.accountant import ConservationError
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.exchange import LIMITS
from curate.joining import Joining
from curate.joining.apply import Beside
from curate.planning.plan import plan
from curate.recipes.compiling import compile_stages
from curate.recipes.graph import Join
from curate.recipes.show import show_outputs
from curate.recipes.stages import WideStage
from curate.running.jobs import TaskError
from curate.upkeep.compaction import Compact
from curate.upkeep.trace import replay, trace_token
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, run_on, texts, tree, write_lines
from tests.curate.test_regroup import engine_on
from tests.curate.token_corpus import write_tokenizer
from transforms.outcome import Outcome, kept
from transforms.tokens import Tokenizer


@dataclass(frozen=True)
class Scored:
    """Writes a column `score`: the length of the text, and nulls for texts with an "x"."""

    name: str = "score"
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema.insert(len(schema) - 1, pa.field(self.name, pa.int64()))

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        sizes = pc.cast(pc.utf8_length(batch.column("text")), pa.int64())
        score = pc.if_else(pc.match_substring(batch.column("text"), "x"), pa.scalar(None, pa.int64()), sizes)
        arrays = [*batch.columns[:-1], score, batch.columns[-1]]
        return kept(pa.RecordBatch.from_arrays(arrays, schema=self.output_schema(batch.schema)))


def lines(count: int = 60) -> list[dict[str, Any]]:
    return [{"name": f"n{number}", "text": f"text {'x' * (number % 3)}{number}"} for number in range(count)]


def attributes(count: int = 80) -> list[dict[str, Any]]:
    return [{"name": f"n{number}", "url": "-", "grade": number * 7, "tag": None} for number in range(10, count)]


def write(root: Path, rows: list[dict[str, Any]], files: int, seed: int = 1) -> Path:
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    for number in range(files):
        write_lines(root / f"{number}.jsonl", shuffled[number::files])
    return root


def documents(root: Path) -> Described:
    return read_jsonl(root, source="s", columns={"key": "name"})


def grades(root: Path) -> Described:
    """Attributes that were computed elsewhere: the same source and key, another root and no texts."""
    columns = {"text": "url", "key": "name", "grade": Column("grade", "int64"), "tag": "tag"}
    return read_jsonl(root, source="s", columns=columns)


@pytest.fixture
def many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards are joined no more, and few rows fill a partition, a block and the memory."""
    monkeypatch.setattr("curate.recipes.compiling.Compact", lambda: Compact(target=1))
    limits = replace(LIMITS, partition_bytes=300, most_partitions=3, block_bytes=200, fan_in=2, memory=600)
    monkeypatch.setattr(exchange, "LIMITS", limits)
    monkeypatch.setattr("curate.parts.BATCH_BYTES", 300)


@pytest.mark.usefixtures("many_shards")
@pytest.mark.parametrize("files", [1, 5])
def test_join_gives_each_document_the_columns_of_its_id(tmp_path: Path, files: int) -> None:
    left, right = write(tmp_path / "left", lines(), files), write(tmp_path / "right", attributes(), files, seed=2)
    joined = documents(left).join(grades(right), ("grade", "tag"))
    result = run_on(Outputs(all=joined), tmp_path / "store", chunk_rows=7)
    dataset = result.outputs["all"]
    rows = [row for batch in dataset.batches() for row in batch.to_pylist()]
    grade = {row["name"]: row["grade"] for row in attributes()}
    name = {row["text"]: row["name"] for row in lines()}
    assert [row["grade"] for row in rows] == [grade.get(name[row["text"]]) for row in rows]
    assert {row["tag"] for row in rows} == {None} and len(rows) == 60
    assert dataset.statistics["joined"] == {"matched": 50, "unmatched": 10, "unused": 20}
    assert next(dataset.batches()).schema.names[-3:] == ["grade", "tag", "extra"]
    (read,) = (
        stage for stage in result.stages if stage.name == "read s" and "grade" not in str(stage.manifest["schema"])
    )
    assert texts(dataset) == texts(read)
    assert [shard["rows"] for shard in dataset.shards()] == [shard["rows"] for shard in read.shards()]
    assert len(dataset.shards()) == files
    assert dataset.manifest["inner"] and dataset.manifest["operation"]["operation"] == "join"
    assert verify(tmp_path / "store").problems == []


@pytest.mark.usefixtures("many_shards")
def test_join_has_the_same_files_in_any_order_of_tasks_and_does_nothing_when_run_again(tmp_path: Path) -> None:
    left, right = write(tmp_path / "left", lines(), 4), write(tmp_path / "right", attributes(), 3)
    outputs = Outputs(all=documents(left).join(grades(right), ("grade",)))
    trees = []
    for number, runner in enumerate((None, ShuffledRunner(1), ShuffledRunner(2))):
        run_on(outputs, tmp_path / str(number), runner, chunk_rows=(4096, 5, 1)[number])
        trees.append(tree(tmp_path / str(number)))
    assert trees[0] == trees[1] == trees[2]
    run_on(outputs, tmp_path / "0")
    assert tree(tmp_path / "0") == trees[0]


def test_join_of_two_branches_of_one_source_brings_their_columns_together(tmp_path: Path) -> None:
    source = documents(write(tmp_path / "in", lines(), 2))
    longer = source.where(field("text") != "text 0", reason="first")
    joined = longer.join(source.apply(Scored()), {"points": "score"}).where(~field("points").is_null(), reason="none")
    result = run_on(Outputs(all=joined), tmp_path / "store")
    rows = [row for batch in result.outputs["all"].batches() for row in batch.to_pylist()]
    assert all(row["points"] == len(row["text"]) for row in rows)
    assert [row["text"] for row in rows] == [text for text in texts(result.outputs["all"]) if "x" not in text]
    assert result.outputs["all"].manifest["inputs"][0]["name"].startswith("join")
    assert "joined" not in result.outputs["all"].statistics


def test_join_through_deduplication_and_tokenization_is_traced_and_replayed(tmp_path: Path) -> None:
    tokenizer = Tokenizer(write_tokenizer(tmp_path), bos=None, eos=None)
    left, right = write(tmp_path / "left", lines(), 2), write(tmp_path / "right", attributes(), 2)
    joined = documents(left).join(grades(right), ("grade",)).where(field("grade") > 100, reason="grade")
    outputs = Outputs(cells=tokenize(deduplicate(joined, prefer=("-grade",)), tokenizer))
    result = run_on(outputs, tmp_path / "store")
    trace = trace_token(result.caches["cells"], "all", 3)
    assert trace.row["grade"] > 100
    assert replay(compile_stages(outputs.products), trace) == trace.row["text"]


class Twice:
    """A dataset that lists its shards twice, as no reader makes one."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset, self.name = dataset, dataset.name

    def kept_shards(self) -> list[dict[str, Any]]:
        return self.dataset.kept_shards() * 2


def test_two_rows_with_one_id_are_an_error_that_names_both(tmp_path: Path) -> None:
    left, right = write(tmp_path / "left", lines(), 1), write(tmp_path / "right", attributes(), 1)
    outputs = Outputs(all=documents(left).join(grades(right), ("grade",)))
    read = [stage for stage in run_on(outputs, tmp_path / "store").stages if stage.name.startswith("compact")]
    stage = compile_stages(outputs.products).outputs["all"]
    assert isinstance(stage, WideStage) and isinstance(stage.operation, Join)
    with engine_on(tmp_path / "store") as engine:
        inputs: Any = (read[0], Twice(read[1]))
        with pytest.raises(
            TaskError, match=r"row (\d+) of shard 0 and row \1 of shard 1 of 'compact read s' both have"
        ):
            Joining(stage, stage.operation, "k" * 64, inputs, engine).run()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((), r"give the columns to take, each once"),
        (("grade", "grade"), r"give the columns to take, each once"),
        (("score",), r"is to take score; the dataset that is joined has id, text"),
        (("text",), r'is to take text, which the documents have already: .* columns=\{"text_joined": "text"\}'),
        ({"extra": "grade"}, r"is to take extra, which the documents have already"),
    ],
)
def test_join_that_cannot_be_is_refused_before_any_work(tmp_path: Path, columns: Any, message: str) -> None:
    left, right = write(tmp_path / "left", lines(), 1), write(tmp_path / "right", attributes(), 1)
    with pytest.raises(ConfigurationError, match=message):
        compile_stages(Outputs(all=documents(left).join(grades(right), columns)).products)


def test_join_is_shown_and_planned(tmp_path: Path) -> None:
    left, right = write(tmp_path / "left", lines(), 1), write(tmp_path / "right", attributes(), 1)
    outputs = Outputs(all=documents(left).join(grades(right), {"grade": "grade", "mark": "tag"}))
    assert "join grade, mark = tag" in show_outputs(outputs.products)
    run_on(outputs, tmp_path / "store")
    assert {stage.state for stage in plan(outputs, tmp_path / "store")} == {"reused"}


def test_one_source_name_for_two_roots_is_still_refused_where_documents_meet(tmp_path: Path) -> None:
    left, right = write(tmp_path / "left", lines(), 1), write(tmp_path / "right", attributes(), 1)
    with pytest.raises(ConfigurationError, match="could have one id"):
        compile_stages(Outputs(a=documents(left).join(grades(right), ("grade",)), b=grades(right)).products)


@pytest.mark.usefixtures("many_shards")
def test_input_without_documents_joins_to_nothing(tmp_path: Path) -> None:
    left = write(tmp_path / "left", lines(9), 2)
    nothing = grades(write(tmp_path / "right", attributes(), 1)).where(field("grade") < 0, reason="none")
    result = run_on(Outputs(all=documents(left).join(nothing, ("grade",))), tmp_path / "store")
    assert result.outputs["all"].rows == 9
    assert result.outputs["all"].statistics["joined"] == {"matched": 0, "unmatched": 9, "unused": 0}
    empty = documents(left).where(field("text") == "", reason="all")
    result = run_on(Outputs(all=empty.join(grades(tmp_path / "right"), ("grade",))), tmp_path / "store")
    assert (result.outputs["all"].rows, result.outputs["all"].statistics["joined"]["unused"]) == (0, 70)


def test_rows_beside_a_shard_begin_again_where_the_shard_does() -> None:
    schema = pa.schema([pa.field("*id", pa.binary(16)), pa.field("n", pa.int64())])
    ids = [bytes([number]) * 16 for number in range(9)]
    batches = [
        pa.RecordBatch.from_pydict({"*id": ids[first : first + 2], "n": list(range(first, min(first + 2, 9)))}, schema)
        for first in range(0, 9, 2)
    ]
    beside = Beside(lambda: iter(batches), schema)

    def of(*numbers: int) -> list[int]:
        found: list[int] = (
            beside.of(pa.array([ids[number] for number in numbers], pa.binary(16))).column("n").to_pylist()
        )
        return found

    assert of(0, 1, 2) == [0, 1, 2]
    assert of(4, 5) == [4, 5]
    assert of(1, 3, 8) == [1, 3, 8]  # from the beginning, without those that are in quarantine now
    assert of(0) == [0]
    with pytest.raises(ConservationError, match="is not among those that were joined"):
        beside.of(pa.array([b"?" * 16], pa.binary(16)))
