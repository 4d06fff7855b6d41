"""Levels and thresholds of scores: exact shares over any shards, in recipes and as published files."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from curate import (
    Column,
    ConfigurationError,
    Outputs,
    fit_levels,
    fit_threshold,
    keep_best,
    read_jsonl,
    train_tokenizer,
)
from curate.fitting import levels
from curate.planning.plan import plan
from curate.recipes.compiling import compile_stages
from curate.recipes.graph import Dataset
from curate.run import Result, run
from curate.store import StoreError
from curate.upkeep.leftovers import leftovers
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, run_on, write_lines
from tests.curate.test_joining import Scored
from tests.transforms.documents import batch_of
from transforms.fitted import FittedError, LocalFile
from transforms.quality import Level, Quality, ScoreAtLeast
from transforms.score_levels import read_levels
from transforms.switch import Switch

LENGTHS = [n * 7 % 41 + 1 for n in range(60)]


def scored(root: Path) -> Dataset:
    """Documents whose score is their length; one without a score has an "x"."""
    columns = {"kind": "kind"}
    return read_jsonl(root, source="s", columns=columns).apply(Scored("quality_score"), name="scored").keep()


def write(root: Path, files: int) -> Path:
    rows = [{"text": "a" * length, "kind": "short" if length < 20 else "long"} for length in LENGTHS]
    rows.append({"text": "xx", "kind": "short"})
    for number in range(files):
        write_lines(root / f"{number}.jsonl", rows[number::files])
    return root


def outputs(documents: Dataset) -> Outputs:
    by_characters = fit_levels(documents, 4, of="characters")
    per_kind = fit_levels(documents, (0.5,), per="kind", name="per kind")
    return Outputs(
        levels=documents.apply(Level(by_characters), name="levels"),
        best=keep_best(documents, 0.1),
        switched=documents.apply(Switch("kind", short=[ScoreAtLeast(fit_threshold(documents, 1))]), name="switched"),
        per_kind=documents.apply(Level(per_kind), name="levels per kind"),
        borders=by_characters,
    )


@dataclass(frozen=True)
class Made:
    raw: Path
    store: Path
    result: Result


@pytest.fixture(scope="module")
def made(memory: Path) -> Made:
    raw, store = write(memory / "levels raw", 3), memory / "levels store"
    return Made(raw, store, run_on(outputs(scored(raw)), store))


def rows_of(result: Result, output: str) -> list[dict[str, Any]]:
    return [row for batch in result.outputs[output].batches() for row in batch.to_pylist()]


def test_levels_hold_equal_shares_of_characters(made: Made) -> None:
    card = made.result.models["borders"].card
    weights = [level["weight"] for level in card["groups"][""]["levels"]]
    assert sum(weights) == sum(LENGTHS) and card["keep"] == ["3/4", "1/2", "1/4"]
    borders = card["groups"][""]["borders"]
    for border, share in zip(borders, (0.75, 0.5, 0.25), strict=True):
        kept = sum(length for length in LENGTHS if length >= border)
        more = sum(length for length in LENGTHS if length > border)
        assert more < share * sum(LENGTHS) <= kept
    for row in rows_of(made.result, "levels"):
        expected = None if row["quality_score"] is None else sum(b <= len(row["text"]) for b in borders)
        assert row["quality_level"] == expected


def test_best_share_is_kept_and_the_ledger_has_score_and_threshold(made: Made) -> None:
    kept = [len(row["text"]) for row in rows_of(made.result, "best") if row["quality_score"] is not None]
    assert sorted(kept) == sorted(LENGTHS)[-len(kept) :] and len(kept) >= 6
    (first, *_) = (row for batch in made.result.outputs["best"].ledger() for row in batch.to_pylist())
    assert first["reason"] == "quality score too low" and first["threshold"] == f"≥ {min(kept)}"


def test_levels_per_column_have_borders_of_each_value(made: Made) -> None:
    for kind in ("short", "long"):
        levels = [row["quality_level"] for row in rows_of(made.result, "per_kind") if row["kind"] == kind]
        known = [level for level in levels if level is not None]
        assert len(known) <= 2 * sum(known) <= len(known) + 4  # a score has two documents at most


def test_levels_are_the_same_for_any_cut_and_order(made: Made, tmp_path: Path) -> None:
    raw = write(tmp_path / "raw", 2)
    other = run_on(outputs(scored(raw)), tmp_path / "store", ShuffledRunner(5))
    borders = [result.models["borders"].content for result in (made.result, other)]
    assert borders[0] == borders[1]


def test_levels_of_histograms_added_up_in_rounds_are_those_of_one(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(levels, "FAN_IN", 2)
    documents = scored(write(tmp_path / "raw", 7))
    borders = fit_levels(documents, 4, of="characters")
    other = run_on(Outputs(borders=borders), tmp_path / "store")
    assert other.models["borders"].content == made.result.models["borders"].content
    assert len(other.models["borders"].manifest["inner"]) == 7 + 4 + 2 + 1


def test_store_is_whole_and_what_a_fitted_file_needs_is_kept(made: Made) -> None:
    store = made.result.store
    assert not verify(store).problems
    assert not leftovers(store, [made.result.name])
    manifest = made.result.outputs["levels"].manifest
    (entry,) = manifest["models"]
    assert entry["key"] == made.result.models["borders"].key
    (step,) = manifest["operation"]["steps"]
    assert step["transform"]["fields"]["levels"] == {"model of": "fit levels"}


def test_a_second_run_reuses_all_and_the_plan_says_so(made: Made) -> None:
    states = {stage.state for stage in plan(outputs(scored(made.raw)), made.store)}
    assert states == {"reused"}


def test_another_fit_changes_the_key_of_what_uses_it_and_the_plan_says_why(made: Made) -> None:
    documents = scored(made.raw)
    changed = Outputs(levels=documents.apply(Level(fit_levels(documents, 3, of="characters")), name="levels"))
    stages = {stage.name: stage for stage in plan(changed, made.store)}
    assert stages["levels"].state == "to run" and stages["levels"].why == ("upstream `fit levels` changed",)


def test_published_levels_stand_for_the_stage(made: Made, tmp_path: Path) -> None:
    fitted = made.result.models["borders"]
    path = tmp_path / "levels.json"
    path.write_bytes(Path(fitted.file("levels.json")).read_bytes())
    digest = fitted.file("levels.json").digest
    pinned = LocalFile(path, digest)
    result = run_on(Outputs(levels=scored(made.raw).apply(Level(pinned), name="levels")), tmp_path / "store")
    assert result.outputs["levels"].content == made.result.outputs["levels"].content
    path.write_bytes(b"{}")
    with pytest.raises(FittedError, match="changed since it was named"):
        pinned.read()
    with pytest.raises(FittedError, match="give the file that was pinned"):
        LocalFile(path, digest)
    with pytest.raises(FittedError, match="holds no levels"):
        read_levels(b"{}")


def test_levels_by_tokens_count_with_a_trained_tokenizer(made: Made, tmp_path: Path) -> None:
    documents = scored(made.raw)
    tokenizer = train_tokenizer(documents, 258, eos=None)
    borders = fit_levels(documents, 2, of=tokenizer)
    card = run_on(Outputs(borders=borders), tmp_path / "store").models["borders"].card
    weights = [level["weight"] for level in card["groups"][""]["levels"]]
    assert 0 < sum(weights) < sum(LENGTHS)  # "aa" is a token
    assert weights[1] >= Fraction(1, 2) * sum(weights)


def test_shares_that_do_not_fall_are_refused() -> None:
    documents = scored(Path("raw"))
    for wrong in (1, (0.1, 0.5), (0.5, 0.5), (0,), (1.5,), ()):
        with pytest.raises(ConfigurationError, match="fit_levels"):
            fit_levels(documents, wrong)
    with pytest.raises(ConfigurationError, match="is told to use nothing"):
        compile_stages(Outputs(documents.apply(Level(fit_levels(documents, 2, column="nothing")))).products)


def test_levels_of_another_column_are_never_used(made: Made) -> None:
    documents = scored(made.raw)
    fitted = fit_levels(documents, 2, per="kind")
    other = read_jsonl(made.raw, source="o").apply(Scored("quality_score"), Scored("other_score"), name="other")
    for used, message in (
        (Level(fitted, "other_score"), "levels of 'quality_score' for the scores 'other_score'"),
        (ScoreAtLeast(fitted, "other_score"), "levels of 'quality_score' for the scores 'other_score'"),
        (Level(fitted), "needs the column 'kind'"),
        (Quality("model", levels=fitted, label="other"), "levels of 'quality_score'"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            compile_stages(Outputs(other.apply(used)).products)
    borders = made.result.models["borders"].file("levels.json")
    for transform in (Level(borders, "other_score"), ScoreAtLeast(borders, "other_score")):
        with pytest.raises(FittedError, match="has levels of 'quality_score', not of 'other_score'"):
            transform.apply(Scored("other_score").apply(batch_of(["text"])).kept)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": "kind"}, "needs whole numbers in 'kind', it is large_string"),
        ({"column": "sure"}, "needs whole numbers in 'sure', it is bool"),
        ({"column": "sure", "of": "kind"}, "needs whole numbers in"),
        ({"column": "pages", "of": "sure"}, "needs whole numbers in 'sure'"),
        ({"column": "pages", "per": "sure"}, "needs strings in 'sure', it is bool"),
    ],
)
def test_columns_of_another_type_are_refused_before_any_work(options: dict[str, Any], message: str) -> None:
    columns: dict[str, str | Column] = {
        "kind": "kind",
        "sure": Column("sure", "bool"),
        "pages": Column("pages", "int64"),
    }
    documents = read_jsonl(Path("raw"), source="s", columns=columns)
    with pytest.raises(ConfigurationError, match=message):
        compile_stages(Outputs(levels=fit_levels(documents, 2, **options)).products)


def test_a_damaged_file_of_a_task_is_never_committed_as_the_model(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made.store, tmp_path / "store")
    borders = made.result.models["borders"]
    shutil.rmtree(tmp_path / "store" / borders.folder)
    for path in (tmp_path / "store" / "shards").glob("*/levels.json"):
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(StoreError, match=r"levels\.json is missing or damaged: remove .* run the recipe again"):
        run(outputs(scored(made.raw)), tmp_path / "store", runner="local")


def test_transform_outside_of_a_run_says_what_it_needs() -> None:
    stage = fit_levels(scored(Path("raw")), 2)
    with pytest.raises(FittedError, match="a run of the recipe makes"):
        Level(stage).apply(Scored("quality_score").apply(batch_of(["text"])).kept)
