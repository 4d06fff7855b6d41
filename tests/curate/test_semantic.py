"""Semantic deduplication through the engine equals the rule in memory, whatever the layout."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from curate import Dataset as Described
from curate import Outputs, deduplicate, deduplicate_semantic, exchange, parts, read_jsonl, reference
from curate.accounting.guard_rail import TooManyRemovedError
from curate.cluster.runner import RayRunner
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.exchange import LIMITS
from curate.recipes.show import show_outputs
from curate.semantic import clusters as comparing
from curate.semantic.clusters import pieces
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, ledger, run_on, texts, tree, write_lines
from tests.curate.test_deduplication import keep_order, rows_of
from tests.transforms.test_duplicates import array
from transforms.embedding import HashedTfidf, directions, document_frequencies, rarity_of
from transforms.minhash import MinHash
from transforms.semantic import STAYS, keep_unlike
from transforms.templates import TemplateRule


@dataclass(frozen=True, slots=True)
class Letters:
    """An embedder of one's own: how often each letter stands in a text, as floats."""

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    @property
    def dimension(self) -> int:
        return 26

    def embed(self, texts: pa.LargeStringArray) -> Any:
        return np.array([[text.count(chr(97 + n)) for n in range(26)] for text in texts.to_pylist()], np.float32)


def shuffled(count: int = 60, seed: int = 4) -> list[str]:
    """Return texts of which some have the words of another in another order, or one word more; and some without any."""
    draw = random.Random(seed)
    vocabulary = [f"{a}{b}" for a in ("ka", "lo", "mi", "su", "te", "vo") for b in ("ren", "tal", "mos", "bik", "dun")]
    made = [" ".join(draw.choice(vocabulary) for _ in range(40)) for _ in range(count // 2)]
    for _ in range(count // 2):
        words = draw.choice(made).split() + draw.sample(vocabulary, 1)
        draw.shuffle(words)
        made.append(" ".join(words))
    return [*made, "", "!!! ???", "..."]


def read(root: Path, given: Sequence[str], source: str, files: int = 2) -> Described:
    named = [{"text": text, "name": f"{source}{n}"} for n, text in enumerate(given)]
    for number in range(files):
        write_lines(root / source / f"{number}.jsonl", named[number::files])
    return read_jsonl(root / source, source=source, columns={"key": "name"})


@pytest.fixture
def sources(tmp_path: Path) -> list[Described]:
    given = shuffled()
    return [read(tmp_path / "in", given[0::2], "old"), read(tmp_path / "in", given[1::2], "new")]


def made(described: Described, store: Path) -> Dataset:
    return run_on(Outputs(texts=described), store).outputs["texts"]


def told(dataset: Dataset) -> dict[bytes, tuple[bytes, int]]:
    """Return id → survivor and cosine, as the ledger says."""
    rows = ledger(dataset)
    assert {(row["transform"], row["reason"], row["measure"]) for row in rows} <= {
        ("deduplicate", "semantic duplicate", "cosine similarity")
    }
    survivors = (bytes.fromhex(json.loads(row["evidence"])["survivor"]) for row in rows)
    return {row["id"]: (survivor, row["numerator"]) for row, survivor in zip(rows, survivors, strict=True)}


@pytest.mark.parametrize("prefer", [("source",), ("-length",)])
def test_one_cluster_through_the_engine_equals_the_rule_over_all_pairs(
    tmp_path: Path, sources: list[Described], prefer: tuple[str, ...]
) -> None:
    described = deduplicate_semantic(*sources, similarity=0.8, clusters=1, prefer=prefer)
    result = run_on(Outputs(texts=described), tmp_path / "store")
    came = rows_of(*(stage for stage in result.stages if stage.name.startswith("read ")))
    order = [came[n] for n in keep_order(came, prefer, ["old", "new"])]
    given = array([row["text"] for row in order])
    embedder = HashedTfidf().fitted(rarity_of(document_frequencies(given), len(given), lightest=1))
    found = keep_unlike(directions(embedder, given), Fraction(4, 5))
    expected = {
        order[n]["id"]: (order[keeper]["id"], found.cosine[n])
        for n, keeper in enumerate(found.keeper.tolist())
        if keeper != STAYS
    }
    assert told(result.outputs["texts"]) == expected and len(expected) > 15
    assert result.outputs["texts"].statistics["semantic"]["without_words"] == 3
    assert {row["threshold"] for row in ledger(result.outputs["texts"])} == {"< 0.8"}
    assert verify(tmp_path / "store").problems == []


def test_survivors_do_not_depend_on_files_pieces_or_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sources: list[Described]
) -> None:
    described = deduplicate_semantic(*sources, similarity=0.8, clusters=5, cap=8)
    whole = made(described, tmp_path / "1")
    monkeypatch.setattr(exchange, "LIMITS", replace(LIMITS, memory=3000))
    monkeypatch.setattr(parts, "BATCH_BYTES", 900)
    monkeypatch.setattr(comparing, "ROWS_AT_ONCE", 7)
    run_on(Outputs(texts=described), tmp_path / "2", ShuffledRunner(3))
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    monkeypatch.setattr(exchange, "LIMITS", replace(LIMITS, partition_bytes=2000, fan_in=2, memory=3000))
    given = shuffled()
    other = [read(tmp_path / "other", given[n::2], name, files=5) for n, name in enumerate(("old", "new"))]
    cut = made(deduplicate_semantic(*other, similarity=0.8, clusters=5, cap=8), tmp_path / "3")
    assert (sorted(texts(cut)), told(cut)) == (sorted(texts(whole)), told(whole)) and told(cut)
    assert whole.statistics["duplicates"]["compared"] > 0 and whole.statistics["semantic"]["clusters"] == 5


@pytest.mark.ray
def test_two_workers_give_the_same_bytes(tmp_path: Path, sources: list[Described], ray_of_two: RayRunner) -> None:
    """Of texts without templates against a reference, too."""
    old = read(tmp_path / "in", shuffled(20, 5), "earlier")
    run_on(Outputs(old=old.keep("old")), tmp_path / "old")
    rule, against = TemplateRule(".05", least=2), reference(tmp_path / "old", "old")
    texts = deduplicate(*sources, method=MinHash(threshold=".5"), without_templates=rule, against=against)
    described = deduplicate_semantic(texts, similarity=0.8, clusters=3, cap=8, against=against)
    run_on(Outputs(texts=described), tmp_path / "1")
    run_on(Outputs(texts=described), tmp_path / "2", ray_of_two)
    assert tree(tmp_path / "1") == tree(tmp_path / "2")


def test_embedder_of_ones_own_decides_what_is_alike(tmp_path: Path) -> None:
    source = read(tmp_path, ["listen to them", "silent or not: met the?", "quiz of jazz fizz buzz"], "s")
    found = made(
        deduplicate_semantic(source, embedder=Letters(), similarity=".8", prefer=("length",)), tmp_path / "out"
    )
    assert sorted(texts(found)) == ["listen to them", "quiz of jazz fizz buzz"]
    assert found.manifest["operation"]["fields"]["embedder"]["class"] == "Letters"


def test_what_a_reference_means_already_goes_and_nothing_of_it_comes_out(
    tmp_path: Path, sources: list[Described]
) -> None:
    old, new = sources
    first = made(deduplicate_semantic(old, similarity=0.8, clusters=1), tmp_path / "1")
    against = reference(tmp_path / "1", "deduplicate semantically")
    second = made(deduplicate_semantic(new, similarity=0.8, clusters=1, against=against), tmp_path / "2")
    assert not set(texts(first)) & set(texts(second)) - {"", "!!! ???", "..."}
    named = [json.loads(row["evidence"]) for row in ledger(second)]
    frozen = {row["id"].hex() for row in rows_of(first)}
    assert named and all((entry.get("reference") is not None) == (entry["survivor"] in frozen) for entry in named)
    assert any("reference" in entry for entry in named)


def test_document_goes_for_a_frozen_one_that_another_frozen_one_resembles(tmp_path: Path) -> None:
    """Of a chain a ~ b ~ c both a and b are frozen: c goes for b, whichever of them comes first."""
    frozen = read(tmp_path, ["a" * 30 + "b" * n for n in (0, 12, 24)], "old")
    run_on(Outputs(old=frozen.keep("old")), tmp_path / "1")
    new, old = read(tmp_path, ["a" * 30 + "b" * 38], "new"), reference(tmp_path / "1", "old")
    options: dict[str, Any] = {"embedder": Letters(), "similarity": 0.9, "clusters": 1, "against": old}
    found = made(deduplicate_semantic(new, **options), tmp_path / "2")
    assert found.rows == 0 and found.statistics["duplicates"]["compared"] == 3


def test_source_that_loses_more_than_its_share_stops_the_run(tmp_path: Path, sources: list[Described]) -> None:
    with pytest.raises(TooManyRemovedError, match=r"'new' would lose .* documents"):
        made(deduplicate_semantic(*sources, similarity=0.8, clusters=1, max_removed={"new": 0.1}), tmp_path / "store")


def test_input_without_words_or_documents_stays_as_it_is(tmp_path: Path) -> None:
    found = made(deduplicate_semantic(read(tmp_path, ["", "?", "?"], "s")), tmp_path / "out")
    assert found.rows == 3 and found.statistics["semantic"]["clusters"] == 0
    write_lines(tmp_path / "none" / "a.jsonl", [b"no json\n"])
    assert made(deduplicate_semantic(read_jsonl(tmp_path / "none", source="n")), tmp_path / "out").rows == 0


def test_equal_texts_whose_every_word_all_have_are_alike(tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": "the same few words in all of them"}] * 30)
    recipe = Outputs(deduplicate_semantic(read_jsonl(tmp_path / "in", source="same")))
    (made,) = run_on(recipe, tmp_path / "store").outputs.values()
    assert made.rows == 1


def test_cluster_beyond_what_a_task_holds_comes_in_pieces() -> None:
    numbers = [0] * 5 + [2] + [3] * 7
    batches = [pa.record_batch({"cluster": numbers[first : first + 4]}) for first in range(0, len(numbers), 4)]
    found = [(table.column("cluster").to_pylist(), before) for table, before in pieces(iter(batches), 3)]
    assert found == [([0] * 3, 0), ([0] * 2, 3), ([2], 0), ([3] * 3, 0), ([3] * 3, 3), ([3], 6)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embedder": HashedTfidf}, "Did you mean an instance"),
        ({"similarity": 1.2}, "a cosine like 0.9"),
        ({"similarity": "1/3"}, "a cosine like 0.9"),
        ({"similarity": "near"}, "a finite number"),
        ({"clusters": 0}, "give 1 to 65,536"),
        ({"cap": 1}, "give 2 to 65,536 documents"),
        ({"prefer": "source"}, "a sequence of column names"),
    ],
)
def test_semantic_deduplication_that_cannot_be_done_is_refused(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        deduplicate_semantic(read_jsonl(tmp_path, source="s"), **arguments)


def test_recipe_shows_what_it_compares(tmp_path: Path) -> None:
    described = deduplicate_semantic(read_jsonl(tmp_path, source="s"), clusters=8, max_removed={"s": 0.5})
    assert "deduplicate semantically at cosine 0.9 in 8 clusters of HashedTfidf()" in show_outputs({"all": described})


def test_documents_on_both_sides_of_a_border_are_compared_and_what_is_named_stays(tmp_path: Path) -> None:
    """Vectors in a fan between two directions: any two clusters have a border with like ones on both sides."""
    fan = read(tmp_path, ["a" * (60 - n) + "b" * n for n in range(60)], "s", files=3)
    found = made(
        deduplicate_semantic(fan, embedder=Letters(), similarity=0.99, clusters=2, prefer=()), tmp_path / "out"
    )
    given, gone = texts(found), told(found)
    assert not set(gone) & {survivor for survivor, _ in gone.values()} and all(
        cosine >= 9900 for _, cosine in gone.values()
    )
    vectors = directions(Letters(), array(given))
    unnamed = [
        row for row, at in enumerate(rows_of(found)) if at["id"] not in {survivor for survivor, _ in gone.values()}
    ]
    alike = keep_unlike(vectors[unnamed], Fraction(99, 100))
    assert (alike.keeper == STAYS).all() and found.statistics["semantic"]["clusters"] == 2
