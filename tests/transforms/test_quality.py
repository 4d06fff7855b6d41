"""Scores and levels as columns, and the filter by score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.transforms.classifier_corpus import SMALL, WIDTH, menu, prose, trained
from tests.transforms.documents import batch_of
from transforms.fitted import FittedError, LocalFile
from transforms.outcome import SchemaError
from transforms.quality import Level, Quality, ScoreAtLeast, score_at, score_field
from transforms.score_levels import Levels

SCORE = score_field("quality")
STORED = Path(__file__).parent / "classifier.bin"


def scored(values: list[int | None], topics: list[str | None] | None = None) -> pa.RecordBatch:
    columns: dict[pa.Field[Any], list[Any]] = {SCORE: values}
    if topics is not None:
        columns[pa.field("topic", pa.large_string())] = topics
    return batch_of(["text"] * len(values), columns)


def test_training_gives_the_bytes_that_are_stored_on_any_machine() -> None:
    assert trained(SMALL).content == STORED.read_bytes()


def test_quality_writes_score_and_level_of_each_text() -> None:
    batch = batch_of([prose(1), menu(2), ""])
    rows = Quality(STORED, levels=(0, 3000), label="prose").apply(batch).kept
    scores = rows.column("prose_score").to_pylist()
    assert scores[0] > 1000 and scores[1] < -1000
    assert rows.column("prose_level").to_pylist() == [sum(b <= score for b in (0, 3000)) for score in scores]
    assert rows.schema.names.index("prose_score") < rows.schema.names.index("extra")


def test_long_text_is_scored_by_its_beginning_middle_and_end() -> None:
    long = prose(1)[:WIDTH] + "\n" * 5000 + menu(1)[:WIDTH]
    texts = [long, prose(1)[:WIDTH], menu(1)[:WIDTH], "\n" * WIDTH]
    whole, *parts = Quality(STORED).apply(batch_of(texts)).kept.column("quality_score").to_pylist()
    assert abs(whole - sum(parts) / 3) <= 1


def test_level_of_a_column_is_null_where_there_is_no_score() -> None:
    rows = Level((10, 20)).apply(scored([9, 10, None, 20])).kept
    assert rows.column("quality_level").to_pylist() == [0, 1, None, 2]
    with pytest.raises(SchemaError, match="needs the column 'quality_score'"):
        Level((1,)).output_schema(batch_of(["a"]).schema)
    with pytest.raises(SchemaError, match="whole numbers in 'text'"):
        Level((1,), "text").output_schema(batch_of(["a"]).schema)


def test_score_at_least_drops_what_is_below_with_score_and_threshold() -> None:
    outcome = ScoreAtLeast(100).apply(scored([99, 100, None, 104]))
    assert outcome.kept.column("quality_score").to_pylist() == [100, None, 104]
    (row,) = outcome.dropped.to_pylist()
    assert (row["reason"], row["numerator"], row["threshold"]) == ("quality score too low", 99, "≥ 100")
    assert outcome.near.num_rows == 2


def test_score_at_least_takes_borders_per_column(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    path.write_bytes(Levels("quality_score", "topic", {"a": (5,), "b": (50,)}).to_bytes())
    rows = scored([4, 5, 49, 50, 0], ["a", "a", "b", "b", "new"])
    outcome = ScoreAtLeast(path).apply(rows)
    assert outcome.kept.column("quality_score").to_pylist() == [5, 50, 0]
    assert [row["threshold"] for row in outcome.dropped.to_pylist()] == ["≥ 5", "≥ 50"]
    tagged = ScoreAtLeast(path).tag("low").apply(rows).kept
    assert [reason is None for reason in tagged.column("low_reason").to_pylist()] == [False, True, False, True, True]


def test_score_at_least_can_be_a_tag_before_its_border_is_fitted() -> None:
    names = ScoreAtLeast("a stage, later").tag().output_schema(scored([]).schema).names
    assert "score_at_least_reason" in names and "score_at_least_quality_score" in names


def test_score_at_a_probability_is_its_log_odds_in_thousandths() -> None:
    assert [score_at(p) for p in (0.5, "0.018112", 0.9)] == [0, -3993, 2197]
    with pytest.raises(ValueError, match="between 0 and 1"):
        score_at(1)


def test_borders_must_be_whole_numbers_that_ascend() -> None:
    for wrong in ((2, 1), (0.5,), (True,)):
        with pytest.raises(ValueError, match="whole numbers, ascending"):
            Level(wrong)


def test_model_is_loaded_when_a_run_begins_and_checked(tmp_path: Path) -> None:
    Quality(STORED).ready()
    Quality(LocalFile(STORED)).ready()
    with pytest.raises(FittedError, match=r"gone\.bin.*give a file that a stage made"):
        Quality(tmp_path / "gone.bin").ready()
    (tmp_path / "levels.json").write_bytes(b"{}")
    with pytest.raises(FittedError, match="is no classifier"):
        Quality(tmp_path / "levels.json").ready()
