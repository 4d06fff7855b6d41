"""Classifiers in recipes: trained, judged, scored with; the same bytes for any cut, order and number of workers."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from curate import ConfigurationError, Outputs, grade, read_jsonl, tokenize, train_classifier
from curate.cluster.runner import RayRunner
from curate.command_line import main
from curate.fitting.classifier import AUTOMATIC
from curate.recipes.compiling import compile_stages
from curate.recipes.graph import Dataset
from curate.recipes.models import FittedModel
from curate.run import Result
from curate.running.jobs import TaskError
from curate.upkeep.trace import replay, trace_token
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, run_on, tree, write_lines
from tests.curate.token_corpus import write_tokenizer
from transforms.fitted import LocalFile
from transforms.learners import HashedLinear
from transforms.quality import Quality
from transforms.tokens import Tokenizer

PROSE = "the river ran past an old mill where people came to sit and talk of weather and of each other"
MENU = "Home Login Cart Help Menu Search Share Next Previous Contact About Terms"
SMALL = HashedLinear(bits=12, common=32)


def prose(seed: int) -> str:
    draw = random.Random(seed)
    sentences = [" ".join(draw.choices(PROSE.split(), k=draw.randint(6, 14))) for _ in range(8)]
    return " ".join(f"{s[0].upper()}{s[1:]}." for s in sentences)


def menu(seed: int) -> str:
    draw = random.Random(seed)
    return "\n".join(" ".join(draw.choices(MENU.split(), k=draw.randint(1, 3))) for _ in range(30))


def write(root: Path, files: int = 2) -> Path:
    """Two sources of prose, one of menus, one of both to be graded; a site has three documents."""
    for source, made, count in (("news", prose, 60), ("books", prose, 24), ("menus", menu, 90)):
        rows = [
            {"text": made(n + 1000 * len(source)), "url": f"https://www.{source}{n // 3}.example/{n}"}
            for n in range(count)
        ]
        for number in range(files):
            write_lines(root / source / f"{number}.jsonl", rows[number::files])
    mixed = [
        {"text": (prose if n % 2 else menu)(9000 + n), "url": f"https://web{n // 4}.example/{n}", "language": "en"}
        for n in range(40)
    ]
    for number in range(files):
        write_lines(root / "web" / f"{number}.jsonl", mixed[number::files])
    return root


def read(root: Path, source: str) -> Dataset:
    return read_jsonl(root / source, source=source, columns={"url": "url", "language": "language"})


def classifier(root: Path, **options: Any) -> FittedModel:
    given = {"learner": SMALL, "target": read(root, "web"), **options}
    return train_classifier([read(root, "news"), read(root, "books")], read(root, "menus"), **given)


def recipe(root: Path) -> Outputs:
    model = classifier(root)
    graded = grade(read(root, "web"), model, 2)
    return Outputs(model=model, graded=graded)


@dataclass(frozen=True)
class Made:
    raw: Path
    store: Path
    result: Result


@pytest.fixture(scope="module")
def made(memory: Path) -> Made:
    raw, store = write(memory / "classifier raw"), memory / "classifier store"
    return Made(raw, store, run_on(recipe(raw), store))


def test_classifier_scores_what_is_like_its_positives_higher(made: Made) -> None:
    rows = [row for batch in made.result.outputs["graded"].batches() for row in batch.to_pylist()]
    good = [row["quality_score"] for row in rows if "." in row["text"]]
    bad = [row["quality_score"] for row in rows if "." not in row["text"]]
    assert len(good) == len(bad) == 20 and min(good) > 1000 and max(bad) < -1000
    assert {row["quality_level"] for row in rows if "." in row["text"]} == {1}
    assert {row["quality_level"] for row in rows if "." not in row["text"]} == {0}


def test_card_says_who_trained_who_judged_and_how_it_went(made: Made) -> None:
    card = made.result.models["model"].card
    assert card["left_out"] == "books"
    documents = card["documents"]
    assert documents["left-out source"]["positive"] == 24 and documents["target"]["unlabelled"] == 40
    counts = [documents[part]["positive"] + documents[part]["negative"] for part in ("training", "held-out sites")]
    assert sum(counts) == 150 and counts[1] > 10
    areas = card["auc"]
    assert areas["pooled"][0] == areas["pooled"][1] > 0
    assert areas["left-out source"][0] == areas["left-out source"][1] > 0
    assert areas["source alone"][0] == areas["source alone"][1]  # each source is of one class: that is why
    assert areas["within source"] is None
    assert sum(tenth["held_out"] for tenth in card["calibration"]) == counts[1]
    assert sum(tenth["target"] for tenth in card["calibration"]) == 40
    assert card["explained_on"] == "target" and card["explained"]["site"]["groups"] == 10
    last = card["precision_recall"][-1]
    assert last["positives"] + last["negatives"] == counts[1]
    told = [feature["example"] for feature in card["features"]["positive"]]
    assert told and all(isinstance(text, str) for text in told)


def test_no_site_trains_and_judges(made: Made) -> None:
    documents = made.result.models["model"].card["documents"]
    sites = [documents[part]["sites"] for part in ("training", "held-out sites")]
    assert sum(sites) == 50 and documents["left-out source"]["sites"] == 8
    assert documents["held-out sites"]["positive"] + documents["held-out sites"]["negative"] == 3 * sites[1]


def test_stores_are_equal_for_any_order_and_a_second_training(made: Made, tmp_path: Path) -> None:
    run_on(recipe(made.raw), tmp_path / "store", ShuffledRunner(3))
    assert tree(tmp_path / "store") == tree(made.store)
    assert not verify(made.result.store).problems


def test_model_does_not_depend_on_how_files_are_cut(made: Made, tmp_path: Path) -> None:
    other = run_on(Outputs(model=classifier(write(tmp_path / "raw", 3))), tmp_path / "store")
    models = [result.models["model"].file("classifier.bin").digest for result in (made.result, other)]
    assert models[0] == models[1]


@pytest.mark.ray
def test_two_workers_make_the_same_store(made: Made, ray_of_two: RayRunner, tmp_path: Path) -> None:
    run_on(recipe(made.raw), tmp_path / "store", ray_of_two)
    assert tree(tmp_path / "store") == tree(made.store)


def test_one_collection_with_labels_gives_any_label(made: Made, tmp_path: Path) -> None:
    web = read(made.raw, "web").keep()
    model = train_classifier(web, read(made.raw, "menus"), learner=SMALL, leave_out=None, held_out=0)
    result = run_on(Outputs(web.apply(Quality(model, label="menu"), name="web")), tmp_path / "store")
    assert "menu_score" in dict(result.outputs["web"].manifest["schema"])


def test_classifier_with_nothing_to_learn_from_says_what_went(made: Made, tmp_path: Path) -> None:
    model = train_classifier(read(made.raw, "books"), read(made.raw, "menus"), learner=SMALL, leave_out="books")
    with pytest.raises(TaskError, match="no positive document is left to train on"):
        run_on(Outputs(model=model), tmp_path / "store")


def test_settings_out_of_range_are_refused() -> None:
    raw = read(Path("raw"), "web")
    for sides, wrong in (((raw, []), {}), ((raw, raw), {"documents": 0}), ((raw, raw), {"held_out": 1})):
        with pytest.raises(ConfigurationError, match="train_classifier"):
            train_classifier(*sides, **wrong)
    with pytest.raises(ConfigurationError, match=r"leave_out='wed'\): the sources are web"):
        train_classifier(raw, raw, leave_out="wed")
    assert train_classifier(raw, raw).fit.leave_out == AUTOMATIC  # type: ignore[attr-defined]


def test_card_command_tells_all_and_saves_what_is_published(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", str(made.store)]) == 0
    told = capsys.readouterr().out
    assert "train classifier (" in told and "left-out source 'books': 24 positive" in told
    assert "pooled             1.0000" in told and "within source      -" in told
    assert "features that tell, negative" in told and "level 1: 20 documents, weight 20" in told
    folder = tmp_path / "published"
    assert main(["card", str(made.store), "--name", "train classifier", "--json", "--save", str(folder)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told_again = json.loads(line)
    assert told_again == json.loads((folder / "card.json").read_bytes())
    digest = made.result.models["model"].file("classifier.bin").digest
    assert told_again["files"] == {"classifier.bin": digest}
    LocalFile(folder / "classifier.bin", digest)


def test_card_command_with_nothing_to_show_or_too_much_to_save_says_so(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["card", str(made.store), "--name", "none"]) != 0
    assert "has no fitted model called 'none': it has '" in capsys.readouterr().err
    assert main(["card", str(made.store), "--save", str(tmp_path)]) != 0
    assert "say which with --name" in capsys.readouterr().err


def test_levels_make_cells_and_a_token_of_one_leads_back_through_model_and_levels(made: Made, tmp_path: Path) -> None:
    graded = grade(read(made.raw, "web"), classifier(made.raw), 2)
    cells = tokenize(graded, Tokenizer(write_tokenizer(tmp_path)), by=("language", "quality_level"))
    told = Outputs(cells=cells)
    caches = run_on(told, tmp_path / "store").caches["cells"]
    assert caches.cells == ("language=en/quality_level=0", "language=en/quality_level=1")
    trace = trace_token(caches, caches.cells[1], 3)
    assert replay(compile_stages(told.products), trace) == trace.row["text"]


def test_column_of_sites_that_is_missing_is_refused_before_any_work(made: Made) -> None:
    model = train_classifier(read(made.raw, "books"), read(made.raw, "menus"), learner=SMALL, site="shop")
    with pytest.raises(ConfigurationError, match="told to use shop"):
        compile_stages(Outputs(model=model).products)
