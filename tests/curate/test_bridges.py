"""Arrow, datatrove, Hugging Face's datasets and plain files: the same documents on both sides."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import orjson
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
import zstandard

from curate import (
    Column,
    ConfigurationError,
    Outputs,
    from_arrow,
    from_hugging_face,
    read_jsonl,
    to_datatrove,
    to_hugging_face,
    write_documents,
)
from curate.bridges.rows import plain_value
from curate.command_line import main
from curate.recipes.compiling import compile_stages
from curate.run import run
from tests.curate.corpus import sentence

ROWS = pa.table(
    {
        "body": [sentence(number) for number in range(30)],
        "name": [f"row {number}" for number in range(30)],
        "stars": pa.array(range(30), pa.int32()),
        "kind": pa.array(["a", "b", None] * 10).dictionary_encode(),
        "nothing": pa.nulls(30),
    }
)
COLUMNS = {"text": "body", "key": "name", "stars": Column("stars", "int64")}


def source(rows, folder, **more):
    return from_arrow(rows, folder, source="rows", columns=COLUMNS, **more)


def files_below(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with the rows as documents."""
    place = tmp_path_factory.mktemp("bridges")
    outputs = Outputs(documents=source(ROWS, place / "arrow", licence="CC0-1.0"))
    return run(outputs, place / "store", runner="local")


def forms(folder):
    whole = ROWS.combine_chunks()
    pq.write_table(ROWS.slice(0, 11), folder / "a.parquet")
    pq.write_table(ROWS.slice(11), folder / "b.parquet")
    return {
        "table": whole,
        "batches": whole.to_batches(max_chunksize=7),
        "generator": iter(whole.to_batches(max_chunksize=7)),
        "reader": pa.RecordBatchReader.from_batches(whole.schema, whole.to_batches(max_chunksize=4)),
        "dataset": pads.dataset(folder, format="parquet"),
        "batch": whole.to_batches()[0],
    }


@pytest.mark.parametrize("form", ["table", "batches", "generator", "reader", "dataset", "batch"])
def test_rows_are_laid_down_alike_however_they_are_given(tmp_path, form):
    (tmp_path / "parquet").mkdir()
    given = forms(tmp_path / "parquet")
    source(given["table"], tmp_path / "first")
    source(given[form], tmp_path / "second")
    assert files_below(tmp_path / "first") == files_below(tmp_path / "second")


def test_rows_are_laid_down_once_and_other_rows_beside_them(tmp_path):
    for rows in (ROWS, ROWS, ROWS.slice(1)):
        source(rows, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_documents_have_key_declared_columns_and_the_rest_as_extra(made):
    documents = made.outputs["documents"]
    (batch,) = documents.batches()
    rows = batch.to_pylist()
    assert [row["text"] for row in rows] == ROWS["body"].to_pylist()
    assert [row["stars"] for row in rows] == list(range(30))
    assert {row["licence"] for row in rows} == {"CC0-1.0"}
    assert json.loads(rows[0]["extra"]) == {"kind": "a", "nothing": None}
    assert len({row["id"] for row in rows}) == 30


def test_key_of_the_source_follows_from_content_not_from_the_folder(made, tmp_path):
    again = run(Outputs(documents=source(ROWS, tmp_path / "elsewhere", licence="CC0-1.0")), tmp_path, runner="local")
    assert again.digest == made.digest
    other = run(
        Outputs(documents=source(ROWS.slice(1), tmp_path / "rows", licence="CC0-1.0")), tmp_path, runner="local"
    )
    assert other.digest != made.digest


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"text": ["a"]}, "got a dict"),
        ("text", "got a str"),
        ([], "got nothing"),
        ([{"text": "a"}], "got a dict where it takes record batches"),
        (pa.table({"text": ["a"], "when": pa.array([1], pa.duration("s"))}), "column 'when'"),
    ],
)
def test_rows_of_another_kind_are_refused_before_any_work(tmp_path, rows, says):
    with pytest.raises(ConfigurationError, match=says):
        from_arrow(rows, tmp_path, source="rows")
    assert not list(tmp_path.iterdir())


def test_datatrove_pipeline_sees_each_document_once_for_any_number_of_tasks(made):
    pytest.importorskip("datatrove")
    reader = pickle.loads(pickle.dumps(to_datatrove(made.outputs["documents"], ["stars", "origin"])))
    for tasks in (1, 3):
        seen = [document for rank in range(tasks) for document in reader(None, rank, tasks)]
        assert Counter(document.text for document in seen) == Counter(ROWS["body"].to_pylist())
    assert seen[3].metadata["stars"] == 3 and seen[3].metadata["origin"]["place"] == "row"
    assert len(seen[3].id) == 32


def test_reader_begins_a_pipeline_of_datatrove(made, tmp_path):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.filters import LambdaFilter
    from datatrove.pipeline.writers import JsonlWriter

    steps = [
        to_datatrove(made.outputs["documents"], ["stars"]),
        LambdaFilter(lambda document: document.metadata["stars"] > 9),
        JsonlWriter(str(tmp_path / "out"), compression=None),
    ]
    LocalPipelineExecutor(steps, tasks=1, logging_dir=str(tmp_path / "logs")).run()
    (path,) = (tmp_path / "out").iterdir()
    written = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["text"] for line in written] == ROWS["body"].to_pylist()[10:]


def test_reader_of_a_column_that_is_not_there_lists_those_that_are(made):
    with pytest.raises(ConfigurationError, match=r"no column likes; it has id, text, .*stars"):
        to_datatrove(made.outputs["documents"], ["likes"])


def test_split_of_hugging_face_is_read_in_its_order_and_gives_the_keys_of_its_rows(tmp_path):
    hub = pytest.importorskip("datasets")
    split = hub.Dataset.from_dict({"text": [sentence(number) for number in range(12)], "label": [1, 0, 1] * 4})
    shuffled = split.shuffle(seed=3)
    keys = set()
    for number, given in enumerate((shuffled, shuffled.to_iterable_dataset(num_shards=1))):
        place = tmp_path / str(number)
        dataset = from_hugging_face(given, place, source="hub", columns={"label": Column("label", "int64")})
        (path,) = place.rglob("*.parquet")
        assert pq.read_table(path)["text"].to_pylist() == shuffled["text"][:]
        keys.add(path.read_bytes())
        assert compile_stages({"documents": dataset})
    assert len(keys) == 1


@pytest.mark.parametrize(("given", "says"), [({"train": 1, "test": 2}, "one of train, test"), ([1], "got a list")])
def test_what_is_no_split_is_refused(tmp_path, given, says):
    with pytest.raises(ConfigurationError, match=says):
        from_hugging_face(given, tmp_path, source="hub")


def test_documents_open_as_a_dataset_of_hugging_face(made, tmp_path):
    pytest.importorskip("datasets")
    opened = to_hugging_face(made.outputs["documents"], tmp_path / "documents.arrow", ["id", "text", "stars", "origin"])
    assert opened.column_names == ["id", "text", "stars", "origin"]
    assert opened["text"][:] == ROWS["body"].to_pylist()
    assert opened[4]["stars"] == 4 and len(opened[4]["id"]) == 32
    with pytest.raises(ConfigurationError, match="is there"):
        to_hugging_face(made.outputs["documents"], tmp_path / "documents.arrow")


def test_files_of_documents_hold_them_in_order_and_are_read_back(made, tmp_path, monkeypatch):
    monkeypatch.setattr("curate.bridges.files.FILE_BYTES", 2000)
    documents = made.outputs["documents"]
    texts = ROWS["body"].to_pylist()
    parquet = write_documents(documents, tmp_path / "parquet")
    assert len(parquet) > 2
    assert [text for path in parquet for text in pq.read_table(path)["text"].to_pylist()] == texts
    arrow = write_documents(documents, tmp_path / "arrow", "arrow", ["text"])
    assert [text for path in arrow for text in pa.ipc.open_stream(path).read_all()["text"].to_pylist()] == texts
    lines = write_documents(documents, tmp_path / "lines", "jsonl")
    found = [json.loads(line) for path in lines for line in zstandard.open(path, "rt", encoding="utf-8")]
    assert [row["text"] for row in found] == texts and found[0]["origin"]["place"] == "row"
    again = run(
        Outputs(documents=read_jsonl(tmp_path / "lines", "*.zst", source="again")), tmp_path / "s", runner="local"
    )
    assert again.outputs["documents"].rows == 30
    with pytest.raises(ConfigurationError, match="not empty"):
        write_documents(documents, tmp_path / "lines")


def test_values_of_a_row_are_those_of_json():
    day = datetime(2026, 1, 2, tzinfo=UTC)
    row = {"share": Decimal("0.8724"), "id": b"\x01", "seen": [day], "more": {"shares": [Decimal("1.0000"), None]}}
    plain = {"share": 0.8724, "id": "01", "seen": ["2026-01-02T00:00:00+00:00"], "more": {"shares": [1.0, None]}}
    assert json.loads(orjson.dumps(plain_value(row))) == plain


def test_command_writes_the_documents_of_the_last_result(made, tmp_path, capsys):
    store = str(made.store.root)
    assert main(["documents", store, "--to", str(tmp_path / "out"), "--format", "jsonl", "--columns", "id,text"]) == 0
    (path,) = capsys.readouterr().out.split()
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        assert list(json.loads(file.readline())) == ["id", "text"]
    assert main(["documents", store, "--to", str(tmp_path / "more"), "--output", "books"]) == 2
    assert "--output: one of documents, not books" in capsys.readouterr().err
