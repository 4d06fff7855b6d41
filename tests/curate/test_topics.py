"""Topics in recipes: fitted to the same sample however documents are cut into shards, assigned, and made into cells."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from curate import (
    Column,
    ConfigurationError,
    Dataset,
    Outputs,
    fit_levels,
    fit_topics,
    read_jsonl,
    tokenize,
    train_tokenizer,
)
from curate.command_line import main
from curate.datasets import dataset_folder
from curate.products import ModelFiles, open_product
from curate.receipts import read_manifest
from curate.recipes.compiling import compile_stages
from curate.recipes.show import show_outputs
from curate.run import Result, run
from curate.upkeep.trace import replay, trace_token
from curate.upkeep.verify import verify
from mixtures import ByColumn, Chunks, Loader, Mixture, Phase, Plan
from tests.curate.corpus import ShuffledRunner, run_on, tasks, tree, write_lines
from tests.road.corpus import run_road
from tests.transforms.documents import batch_of
from tests.transforms.topic_texts import SUBJECTS, texts_about_topics
from transforms.embedding import HashedTfidf
from transforms.quality import Level
from transforms.topics import AssignTopic, Topics
from viewers.report import write_report

MADE = [*texts_about_topics(25, words=40), ("en", "none", "… !")]
COLUMNS: dict[str, str | Column] = {
    "language": "language",
    "subject": "subject",
    "quality_score": Column("score", "int64"),
}


def write(root: Path, files: int) -> Path:
    rows = [
        {"text": text, "language": language, "subject": subject, "score": n * 37 % 99}
        for n, (language, subject, text) in enumerate(MADE)
    ]
    for number in range(files):
        write_lines(root / f"{number}.jsonl", rows[number::files])
    return root


def made_of(root: Path) -> Dataset:
    return read_jsonl(root, source="made", columns=COLUMNS).keep()


def outputs(root: Path) -> Outputs:
    texts = made_of(root)
    topics = fit_topics(texts, 4, language="language", embedder=HashedTfidf(128))
    levels = Level(fit_levels(texts, 3), "quality_score")
    assigned = texts.apply(AssignTopic(topics), levels, name="assign")
    cells = tokenize(assigned, train_tokenizer(texts, 400), by=("topic", "quality_level"))
    weights = ByColumn(quality_level={0: 0, 2: 2}, topic={None: 0})
    mixture = Mixture(cells, Phase("all", tokens=4000, weights=weights), sequences=Chunks(16), batch=4, seed=1)
    return Outputs(mixture, topics=topics, documents=assigned, batches=[(0, 4)])


@dataclass(frozen=True)
class Run:
    raw: Path
    result: Result

    @property
    def topics(self) -> ModelFiles:
        return topics_of(self.result)

    @property
    def file(self) -> Path:
        return self.topics.store.local(f"{self.topics.folder}/topics.model")


def topics_of(result: Result) -> ModelFiles:
    entry = read_manifest(result.store, result.name)["outputs"]["topics"]
    product = open_product(result.store, entry["name"], entry["key"])
    assert isinstance(product, ModelFiles)
    return product


@pytest.fixture(scope="module")
def made(memory: Path) -> Run:
    raw = write(memory / "topics raw", 3)
    return Run(raw, run_road(raw, memory / "topics store", outputs=outputs(raw)))


def rows_of(result: Result) -> list[dict[str, Any]]:
    return [row for batch in result.outputs["documents"].batches() for row in batch.to_pylist()]


def names_of(result: Result) -> Mapping[str, str]:
    """Return the name of the topic in which all texts of each subject are."""
    counted = Counter((row["subject"], row["topic"]) for row in rows_of(result))
    return {subject: topic for (subject, topic), count in counted.items() if count == 25}


def test_topics_in_a_recipe_are_those_of_the_texts(made: Run) -> None:
    card = made.topics.manifest["card"]
    assert (card["documents"], card["of"], card["without_words"]) == (101, 101, 1)
    assert card["embedder"]["class"] == "HashedTfidf"
    names = names_of(made.result)
    assert set(names) == {subject for _, subject in SUBJECTS}
    assert sorted(names.values()) == sorted(topic["name"] for topic in card["topics"])
    for (_, subject), listed in SUBJECTS.items():
        assert set(names[subject].split("-")) <= set(listed.lower().split())
    assert [row["topic"] for row in rows_of(made.result) if row["subject"] == "none"] == [None]


def test_statistics_count_documents_by_topic(made: Run) -> None:
    groups = made.result.outputs["documents"].statistics["groups"]["topic"]
    assert {name: counted["documents"] for name, counted in groups.items()} == dict.fromkeys(
        names_of(made.result).values(), 25
    )


def test_cells_of_topic_and_level_are_mixed(made: Run) -> None:
    caches = made.result.caches["training"]
    names = sorted(names_of(made.result).values())
    assert set(caches.cells) >= {f"topic={name}/quality_level={level}" for name in names for level in range(3)}
    assert sum(name.startswith("topic=") for name in caches.cells) == len(caches.cells) == 13  # and the one without
    loader = Loader(Plan.load(made.result.folder / "plan.json", made.result.plan), caches.open())
    assert loader.batch(0).tokens.shape == (4, 16)
    drawn = loader.plan.draws()
    assert {name[-1] for name, count in drawn.items() if count} == {"1", "2"}
    sizes = {cell: entry["tokens"] for cell, entry in caches.manifest["cells"].items()}
    level = {n: [sum(of[cell] for cell in sizes if cell.endswith(n)) for of in (drawn, sizes)] for n in "12"}
    assert level["2"][0] / level["1"][0] == pytest.approx(2 * level["2"][1] / level["1"][1], rel=0.05)


def test_topics_of_a_corpus_cut_otherwise_are_the_same_file(made: Run, tmp_path: Path) -> None:
    other = run_on(outputs(write(tmp_path / "raw", 5)), tmp_path / "store")
    ours, theirs = made.topics.manifest, topics_of(other).manifest
    assert theirs["files"] == ours["files"]
    assert [t["documents"] for t in theirs["card"]["topics"]] == [t["documents"] for t in ours["card"]["topics"]]
    assert names_of(other) == names_of(made.result)


def test_topics_made_in_another_order_are_equal_byte_for_byte(made: Run, tmp_path: Path) -> None:
    run_road(made.raw, tmp_path / "store", ShuffledRunner(3), chunk_rows=7, outputs=outputs(made.raw))
    assert tree(tmp_path / "store") == tree(made.result.folder.parent)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("workers", [2])
def test_topics_made_on_ray_are_equal_byte_for_byte(made: Run, tmp_path: Path, workers: int) -> None:
    run(outputs(made.raw), tmp_path / "store", name="road", runner="ray", workers=workers)
    assert tree(tmp_path / "store") == tree(made.result.folder.parent)


def test_topics_that_are_there_are_used_again_and_a_changed_k_fits_anew(made: Run, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(made.result.folder.parent, store)
    run_road(made.raw, store, outputs=outputs(made.raw))
    assert tasks(store) == {}
    texts = made_of(made.raw)
    fewer = texts.apply(AssignTopic(fit_topics(texts, 2, language="language", embedder=HashedTfidf(128))), name="two")
    result = run_on(Outputs(two=fewer), store)
    assert set(tasks(store)) >= {"topics: sample", "topics: fit"}
    assert len({row["topic"] for batch in result.outputs["two"].batches() for row in batch.to_pylist()}) == 3


def test_verify_of_topics_finds_nothing_and_a_flipped_byte_is_named(made: Run, tmp_path: Path) -> None:
    assert verify(made.result.folder.parent).ok
    store = tmp_path / "store"
    shutil.copytree(made.result.folder.parent, store)
    path = store / made.topics.folder / "topics.model"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert "topics.model" in str(verify(store))


def test_trace_of_a_token_replays_through_its_topic(made: Run) -> None:
    caches = made.result.caches["training"]
    trace = trace_token(caches, caches.cells[0], 5)
    assert replay(compile_stages(outputs(made.raw).products), trace) == trace.row["text"]
    assert f"topic={trace.row['topic']}/quality_level={trace.row['quality_level']}" == caches.cells[0]


def test_published_topics_assign_the_same_without_a_recipe(made: Run, tmp_path: Path) -> None:
    shutil.copy(made.file, tmp_path / "published.model")
    rows = rows_of(made.result)
    kept = AssignTopic(tmp_path / "published.model").apply(batch_of([row["text"] for row in rows])).kept
    assert kept.column("topic").to_pylist() == [row["topic"] for row in rows]
    assert kept.column("topic_margin").to_pylist() == [row["topic_margin"] for row in rows]
    assert Topics.from_bytes(made.file.read_bytes()).to_bytes() == made.file.read_bytes()


def test_sample_is_of_the_texts_with_the_lowest_digests(made: Run, tmp_path: Path) -> None:
    """So a smaller one is a part of a larger one, and equal texts count once."""
    raw = tmp_path / "raw"
    shutil.copytree(made.raw, raw)
    write_lines(raw / "copies.jsonl", [{"text": text, "language": "en"} for _, _, text in MADE[:60]])
    cards = {}
    for count in (30, 1000):
        model = fit_topics(made_of(raw), 4, documents=count, embedder=HashedTfidf(64))
        cards[count] = topics_of(run_on(Outputs(topics=model), tmp_path / f"store {count}")).manifest["card"]
    assert (cards[30]["documents"], cards[1000]["documents"], cards[30]["of"]) == (30, 101, 161)


def test_topics_are_shown_where_a_recipe_is_shown(made: Run) -> None:
    shown = show_outputs(outputs(made.raw).products)
    assert "fit topics" in shown
    assert "AssignTopic(" in shown


def test_card_of_topics_is_told_in_words_and_saved(
    made: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(made.result.folder.parent)
    assert main(["card", store, "--name", "fit topics", "--save", str(tmp_path / "published")]) == 0
    told = capsys.readouterr().out
    assert "fitted to 101 of 101 documents, 1 without words" in told
    assert all(name in told for name in names_of(made.result).values())
    assert (tmp_path / "published" / "topics.model").read_bytes() == made.file.read_bytes()


def test_report_shows_topics_and_the_grid_of_cells(made: Run, tmp_path: Path) -> None:
    page = write_report(made.result.store, made.result.name, tmp_path / "report.html").read_text("utf-8")
    assert "Topics, of the documents looked at" in page
    assert "Share of tokens in cells of tokenize" in page


@dataclass(frozen=True)
class Letters:
    """An embedder of the user's own."""

    letters: str = "aeiou"
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def dimension(self) -> int:
        return len(self.letters)

    def embed(self, texts: pa.LargeStringArray) -> npt.NDArray[np.float32]:
        return np.array([[text.count(letter) for letter in self.letters] for text in texts.to_pylist()], np.float32)


def test_an_embedder_of_the_user_is_used_for_fitting_and_assigning(made: Run, tmp_path: Path) -> None:
    texts = made_of(made.raw)
    result = run_on(
        Outputs(documents=texts.apply(AssignTopic(fit_topics(texts, 3, embedder=Letters()))), topics=fit_topics(texts)),
        tmp_path / "store",
    )
    assert len({row["topic"] for row in rows_of(result)}) == 4
    manifest = result.outputs["documents"].manifest
    (model,) = (m for m in read_all(result) if m["card"]["embedder"]["class"] == "Letters")
    assert model["card"]["embedder"]["fields"] == {"letters": "aeiou"}
    assert manifest["operation"]["steps"][-1]["transform"]["fields"]["embedder"]["class"] == "Letters"


def read_all(result: Result) -> list[dict[str, Any]]:
    entries = [e for e in read_manifest(result.store, result.name)["stages"] if e["kind"] == "model"]
    return [read_manifest(result.store, dataset_folder(e["name"], e["key"])) for e in entries]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": 0}, "k=0"),
        ({"documents": 0}, "documents=0"),
        ({"k": 10, "min_share": 0.2}, "10 topics cannot"),
        ({"embedder": "words"}, "no embedder"),
        ({"embedder": HashedTfidf}, "an instance"),
    ],
)
def test_fit_topics_of_wrong_options_is_refused(made: Run, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        fit_topics(made_of(made.raw), **options)


def test_fit_topics_of_a_missing_language_column_is_refused_before_any_work(made: Run) -> None:
    model = fit_topics(made_of(made.raw), 4, language="tongue")
    with pytest.raises(ConfigurationError, match="tongue"):
        compile_stages(Outputs(topics=model).products)
