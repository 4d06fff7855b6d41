"""`map.parquet` holds the samples of the stages with places, and no text that must not be shown."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.command_line import main
from curate.store import Store
from tests.viewers.stores import Made, report, sample, stage
from viewers.atlas import MOST, SCHEMA, map_parquet
from viewers.loading import load_report


@pytest.fixture(scope="module")
def points(made: Made) -> pa.Table:
    found = map_parquet(load_report(Store(made.root), made.folder))
    assert found == map_parquet(load_report(Store(made.root), made.folder))
    return pq.read_table(BytesIO(found))


def test_map_has_the_samples_with_places_between_nought_and_one(points: pa.Table, made: Made) -> None:
    assert points.schema.names == SCHEMA.names
    assert set(points["verdict"].to_pylist()) == {"kept", "dropped", "near miss", "edited"}
    for axis in ("x", "y"):
        values = points[axis].to_pylist()
        assert all(0 <= value < 1 for value in values) and len(set(values)) == len(values)
    there = {row["id"].hex(): row for made_stage in made.result.stages for row in made_stage.samples()}
    for row in points.to_pylist():
        assert row["text"] and row["source"] == there[row["id"]]["source"]


def test_map_leaves_out_texts_that_must_not_be_shown(points: pa.Table) -> None:
    assert set(points["source"].to_pylist()) == {'crawl"><script>'}  # shelf forbids excerpts
    assert not any("someone" in text and "@example.org" in text for text in points["text"].to_pylist())


def test_map_of_very_many_samples_has_a_limit_and_evidence_tells_the_language() -> None:
    many = tuple(sample(f"text {n}", n, evidence='{"language":"de"}' if n else "not json") for n in range(MOST + 5))
    found = pq.read_table(BytesIO(map_parquet(report(stage(samples=many)))))
    assert len(found) == MOST
    assert found["language"].to_pylist()[:2] == [None, "de"]


def test_map_tells_topic_level_language_and_licence_of_each_document(graded: Made) -> None:
    documents = {row["id"].hex(): row for batch in graded.result.stages[-1].batches() for row in batch.to_pylist()}
    points = pq.read_table(BytesIO(map_parquet(load_report(Store(graded.root), graded.folder)))).to_pylist()
    assert {point["topic"] for point in points} > {"sea"} and {point["language"] for point in points} >= {"de", None}
    for point in points:
        row = documents[point["id"]]
        assert (point["topic"], point["language"], point["licence"]) == (row["topic"], row["language"], row["licence"])
        level = None if row["quality_level"] is None or point["stage"] != "graded" else str(row["quality_level"])
        assert point["level"] == level


def test_map_of_two_columns_of_levels_names_them() -> None:
    samples = (sample("a", levels='{"a_level":1,"b_level":2}', topic="sea"),)
    (point,) = pq.read_table(BytesIO(map_parquet(report(stage(samples=samples))))).to_pylist()
    assert (point["level"], point["topic"]) == ("a_level 1, b_level 2", "sea")


def test_map_of_no_samples_is_a_table_without_rows() -> None:
    assert len(pq.read_table(BytesIO(map_parquet(report(stage()))))) == 0


def test_report_writes_the_map_beside_the_page(sheep: Made) -> None:
    assert main(["report", str(sheep.root)]) == 0
    assert pq.read_table(sheep.root / "map.parquet").num_rows > 0
