"""Models that a stage fits and transforms of the same recipe use: thresholds, as the smallest of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curate import ConfigurationError, Outputs, deduplicate, field, read_jsonl, tokenize, train_tokenizer
from curate.cluster.runner import RayRunner
from curate.fitting.thresholds import fit_thresholds
from curate.planning.plan import plan
from curate.products import ModelFiles, open_product
from curate.recipes.compiling import compile_stages
from curate.run import Result, open_result, run
from curate.store import Store
from curate.upkeep.leftovers import leftovers
from curate.upkeep.trace import replay, trace_token
from curate.upkeep.verify import verify
from tests.curate.corpus import run_on, sentence, tree, write_lines
from tests.transforms.documents import batch_of
from transforms.fitted import FittedError, LocalFile
from transforms.fitted_filter import FittedFilter
from transforms.gopher_rules import GopherQuality
from transforms.switch import Switch

SHORT, LONG = 10, 60
RULES = GopherQuality(
    min_words=50,
    max_words=None,
    min_mean_word_length=None,
    max_mean_word_length=None,
    min_alphabetic_words=None,
    min_stop_words=None,
)


def corpus(root: Path, files: int) -> Path:
    """40 English texts of 60 to 99 words, as many Finnish ones of 10 to 49, and a few in a third language."""
    lines = [{"language": "en", "text": sentence(n, LONG + n - 4)} for n in range(40)]
    lines += [{"language": "fi", "text": sentence(100 + n, SHORT + n - 4)} for n in range(40)]
    lines += [{"language": "sv", "text": sentence(200 + n, SHORT)} for n in range(3)]
    lines += [{"language": None, "text": sentence(300, SHORT)}]
    for index in range(files):
        write_lines(root / f"{index}.jsonl", lines[index::files])
    return root


def recipe(root: Path, keep: str = "0.75", **options: Any) -> Outputs:
    documents = read_jsonl(root, "*.jsonl", source="texts", columns={"language": "language"})
    limits = fit_thresholds(documents, RULES, per="language", keep=keep, least=10, **options)
    return Outputs(limits=limits, texts=deduplicate(documents.apply(FittedFilter(RULES, limits, "language"))))


@pytest.fixture(scope="module")
def raw(memory: Path) -> Path:
    return corpus(memory / "fitted", 3)


@pytest.fixture(scope="module")
def made(raw: Path, memory: Path) -> Result:
    return run_on(recipe(raw), memory / "fitted store")


def model(result: Result) -> ModelFiles:
    entry = json.loads(result.folder.joinpath("manifest.json").read_bytes())["outputs"]["limits"]
    product = open_product(result.store, entry["name"], entry["key"])
    assert isinstance(product, ModelFiles)
    return product


def test_thresholds_are_fitted_per_language_and_applied(made: Result) -> None:
    assert model(made).card["bounds"]["fi"]["too few words"] == "21"
    assert model(made).card["bounds"]["en"]["too few words"] == "71"
    assert "sv" not in model(made).card["bounds"]
    kept = [language for batch in made.outputs["texts"].batches(["language"]) for language in batch[0].to_pylist()]
    assert {language: kept.count(language) for language in set(kept)} == {"en": 30, "fi": 30}
    dropped = [row for stage in made.stages for batch in stage.ledger() for row in batch.to_pylist()]
    assert {(row["transform"], row["threshold"]) for row in dropped} == {
        ("GopherQuality", bound) for bound in ("≥ 21", "≥ 50", "≥ 71")
    }


def test_store_with_a_model_is_sound_and_collects_nothing(made: Result) -> None:
    store = made.store
    assert verify(store).problems == []
    assert leftovers(store, [made.name]) == []


def test_model_does_not_depend_on_the_cut_into_files(made: Result, tmp_path: Path) -> None:
    other = run_on(recipe(corpus(tmp_path / "raw", 1)), tmp_path / "store")
    assert model(other).content == model(made).content


@pytest.mark.ray
def test_store_with_a_model_made_on_ray_is_equal_byte_for_byte(
    raw: Path, made: Result, tmp_path: Path, ray_of_two: RayRunner
) -> None:
    run_on(recipe(raw), tmp_path, ray_of_two)
    assert tree(tmp_path) == tree(made.folder.parent)


def test_other_thresholds_run_what_uses_them_again(raw: Path, made: Result) -> None:
    states = {stage.name: stage.state for stage in plan(recipe(raw), made.store).stages}
    assert set(states.values()) == {"reused"}
    states = {stage.name: stage.state for stage in plan(recipe(raw, keep="0.5"), made.store).stages}
    assert states["fit thresholds"] == "to run" and states["apply texts"] == "to run"


def test_thresholds_like_those_of_a_language_let_as_many_pass(raw: Path, tmp_path: Path) -> None:
    documents = read_jsonl(raw, "*.jsonl", source="texts", columns={"language": "language"})
    rules = GopherQuality(min_words=80, min_stop_words=None)
    limits = fit_thresholds(documents, rules, per="language", like="en", only=["too few words"], least=10)
    made = run(Outputs(limits=limits, texts=documents), tmp_path, runner="local")
    assert model(made).card["bounds"] == {"en": {"too few words": "80"}, "fi": {"too few words": "30"}}


def test_thresholds_like_a_language_that_is_missing_are_an_error(raw: Path, tmp_path: Path) -> None:
    documents = read_jsonl(raw, "*.jsonl", source="texts", columns={"language": "language"})
    limits = fit_thresholds(documents, RULES, per="language", like="sv", least=10)
    with pytest.raises(ConfigurationError, match="needs at least 10 documents"):
        run(Outputs(limits=limits, texts=documents), tmp_path, runner="local")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of keep"),
        ({"keep": 0.5, "like": "en"}, "one of keep"),
        ({"keep": 2}, "a share"),
        ({"keep": 0.5, "only": ["too blue"]}, "the rules are too few words"),
    ],
)
def test_thresholds_that_cannot_be_fitted_are_refused_at_once(raw: Path, options: Any, message: str) -> None:
    documents = read_jsonl(raw, "*.jsonl", source="texts", columns={"language": "language"})
    with pytest.raises(ConfigurationError, match=message):
        fit_thresholds(documents, RULES, per="language", **options)


def twice(root: Path, word: str = "x") -> Outputs:
    """Two models of one name, per two columns, in one stage."""
    documents = read_jsonl(root, "*.jsonl", source="texts", columns={"language": "language", "tongue": "language"})
    used = [
        FittedFilter(RULES, fit_thresholds(documents, RULES, per=per, keep=keep, least=10), per)
        for per, keep in (("language", "0.75"), ("tongue", "0.5"))
    ]
    kept = documents.apply(*used, name="kept").where(field("language") != word, reason="language", name="kept")
    return Outputs(cells=tokenize(kept, train_tokenizer(kept, 300)))


def test_models_of_one_name_are_told_apart_in_replays_and_plans(raw: Path, tmp_path: Path) -> None:
    caches = run_on(twice(raw), tmp_path).caches["cells"]
    trace = trace_token(caches, caches.cells[0], 5)
    assert replay(compile_stages(twice(raw).products), trace) == trace.row["text"]
    reasons = {stage.name: stage.why for stage in plan(twice(raw, "y"), Store(tmp_path)).stages}
    assert not [reason for reason in reasons["kept"] if "upstream" in reason]
    other = compile_stages(recipe(raw).products)
    with pytest.raises(ConfigurationError, match="give the recipe that made the store"):
        replay(other, trace)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"bounds":{"en":{"too few rhymes":"3"}},"per":"language"}', "thresholds of another filter"),
        (b'{"borders":{}}', "holds no thresholds"),
        (b"\xaa", "holds no thresholds"),
    ],
)
def test_thresholds_of_something_else_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    limits = tmp_path / "thresholds.json"
    limits.write_bytes(content)
    batch = batch_of(["just four short words"]).append_column("language", pa.array(["en"], pa.large_string()))
    with pytest.raises(ValueError, match=message):
        FittedFilter(RULES, limits, "language").apply(batch)


def test_group_of_empty_names_lends_its_bounds_to_no_other(tmp_path: Path) -> None:
    limits = tmp_path / "thresholds.json"
    limits.write_text('{"bounds":{"":{"too few words":"3"}},"per":"language"}')
    languages = ["", None, "en"]
    batch = batch_of(["just four short words"] * 3)
    batch = batch.append_column("language", pa.array(languages, pa.large_string()))
    kept = FittedFilter(RULES, limits, "language").apply(batch).kept
    assert kept.column("language").to_pylist() == [""]


def test_model_within_a_switch_is_found(raw: Path) -> None:
    documents = read_jsonl(raw, "*.jsonl", source="texts", columns={"language": "language"})
    limits = fit_thresholds(documents, RULES, per="language", keep=0.5, least=10)
    inner = documents.apply(Switch("language", fi=[FittedFilter(RULES, limits, "language")]))
    stages = compile_stages(Outputs(texts=inner).products)
    assert [stage.name for stage in stages.ordered][-2:] == ["fit thresholds", "apply texts"]


def test_model_shows_in_the_tree_of_a_recipe(raw: Path) -> None:
    assert "thresholds=the model 'fit thresholds'" in str(recipe(raw))


def test_result_with_a_model_opens(made: Result) -> None:
    assert open_result(Store(made.folder.parent), made.name).digest == made.digest


def test_thresholds_changed_after_they_were_named_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "thresholds.json"
    path.write_text('{"bounds":{"en":{"too few words":"20"}},"per":"language"}')
    pinned = FittedFilter(RULES, LocalFile(path), "language")
    path.write_text('{"bounds":{"en":{"too few words":"2"}},"per":"language"}')
    batch = batch_of(["one two three"], {pa.field("language", pa.large_string()): ["en"]})
    with pytest.raises(FittedError, match="it was changed since"):
        pinned.apply(batch)
