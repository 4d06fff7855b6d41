"""Files of topics and the transform that assigns them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of
from transforms.embedding import HashedTfidf, document_frequencies, rarity_of
from transforms.spherical_kmeans import ONE, unit_rows
from transforms.topics import AssignTopic, Topics, TopicsError, beginnings

SEA, BREAD = "the tide turned in the harbour", "the dough rose in the oven"
TEXTS = pa.array([SEA, BREAD], pa.large_string())


def small_topics(characters: int = 1000) -> Topics:
    embedder = HashedTfidf(64).fitted(rarity_of(document_frequencies(TEXTS), 2))
    centres = unit_rows(embedder.embed(TEXTS))
    return Topics(("sea", "bread"), (("tide", "harbour"), ("dough",)), centres, embedder, characters)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "topics.model").write_bytes(small_topics().to_bytes())
    return tmp_path / "topics.model"


def test_assign_topic_writes_name_and_margin(file: Path) -> None:
    outcome = AssignTopic(file).apply(batch_of([BREAD, SEA, "", "the tide, the dough", "… !"]))
    assert outcome.kept.column("topic").to_pylist()[:3] == ["bread", "sea", None]
    margins = outcome.kept.column("topic_margin").to_pylist()
    assert margins[2] is margins[4] is None
    assert all(margin >= 0 for margin in margins[:2])
    assert margins[3] < min(margins[:2])
    centres = small_topics().centres.astype(np.int64)
    assert margins[1] == Decimal(int(centres[0] @ (centres[0] - centres[1])) * 10_000 // ONE**2).scaleb(-4)
    assert not outcome.dropped.num_rows


def test_assign_topic_to_another_column_leaves_topic_alone(file: Path) -> None:
    topic = pa.field("topic", pa.large_string())
    kept = AssignTopic(file, column="subtopic").apply(batch_of([SEA], {topic: ["mine"]})).kept
    assert kept.schema.names[-4:] == ["topic", "subtopic", "subtopic_margin", "extra"]
    assert (kept.column("topic")[0].as_py(), kept.column("subtopic")[0].as_py()) == ("mine", "sea")


def test_assign_topic_never_overwrites_what_every_document_has(file: Path) -> None:
    for column in ("source", "extra"):
        with pytest.raises(ValueError, match="a column of every document"):
            AssignTopic(file, column=column)


def test_assign_topic_of_no_file_of_topics_is_not_ready(tmp_path: Path, file: Path) -> None:
    AssignTopic(file).ready()
    with pytest.raises(RuntimeError, match=r"absent\.model"):
        AssignTopic(tmp_path / "absent.model").ready()
    (tmp_path / "other").write_bytes(b"[]")
    with pytest.raises(RuntimeError, match="no file of topics"):
        AssignTopic(tmp_path / "other").ready()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: b"{}" + content, "no file of topics"),
        (lambda content: b"", "no file of topics"),
        (lambda content: content[:-1], "cut"),
        (lambda content: content.replace(b'64,"version":1', b'64,"version":9'), "fitted with"),
        (lambda content: content.replace(b'"curate topics","version":1', b'"curate topics","version":2'), "format"),
    ],
)
def test_topics_of_a_wrong_file_are_refused(change: Any, said: str) -> None:
    with pytest.raises(TopicsError, match=said):
        Topics.from_bytes(change(small_topics().to_bytes()))


@dataclass(frozen=True)
class Letters:
    dimension: int = 2
    version: ClassVar[int] = 3
    libraries: ClassVar[tuple[str, ...]] = ()
    isolated: ClassVar[bool] = True

    def embed(self, texts: pa.LargeStringArray) -> npt.NDArray[np.int8]:
        return np.array([[text.count("a"), text.count("b")] for text in texts.to_pylist()], np.int8)


def test_assign_topic_with_another_embedder_needs_that_one(tmp_path: Path, file: Path) -> None:
    topics = Topics(("a", "b"), ((), ()), np.array([[ONE, 0], [0, ONE]], np.int16), Letters(), 100)
    (tmp_path / "letters.model").write_bytes(topics.to_bytes())
    letters = tmp_path / "letters.model"
    transform = AssignTopic(letters, Letters())
    assert transform.isolated
    assert not AssignTopic(file).isolated
    assert transform.apply(batch_of(["aab", "bb", "c"])).kept.column("topic").to_pylist() == ["a", "b", None]
    with pytest.raises(TopicsError, match="AssignTopic\\(…, embedder=…\\)"):
        AssignTopic(letters).apply(batch_of(["a"]))


def test_beginnings_are_code_points() -> None:
    texts = pa.array(["äöüß", "ab", None], pa.large_string())
    assert beginnings(texts, 2).to_pylist() == ["äö", "ab", None]
    assert beginnings(texts, 100) is texts
