"""Fitting topics: clear topics are found, the card tells of them, the bytes are the same again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.transforms.topic_texts import SUBJECTS, texts_about_topics
from transforms.embedding import HashedTfidf
from transforms.topic_fitting import Fitting, Sampled, fit
from transforms.topics import Topics, TopicsError

MADE = texts_about_topics(50)
HOW = Fitting(4, HashedTfidf(128), Fraction(1, 100), 5000, 0, 25)


def sampled(texts: list[str]) -> Sampled:
    ids = [row.to_bytes(16, "big") for row in range(len(texts))]
    return Sampled(ids, pa.array(texts, pa.large_string()))


SAMPLED = replace(sampled([text for _, _, text in MADE]), languages=[language for language, _, _ in MADE])
SUBJECT = np.repeat(np.arange(4), 50)


def test_fit_of_clear_topics_finds_them() -> None:
    topics, card = fit(SAMPLED, HOW)
    found, none = topics.assign(SAMPLED.texts)
    assert not none.any()
    pairs = set(zip(SUBJECT.tolist(), found.labels.tolist(), strict=True))
    assert len(pairs) == 4
    for subject, topic in pairs:
        listed = list(SUBJECTS.values())[subject].lower().split()
        assert set(topics.terms[topic]) <= set(listed)
        assert set(topics.names[topic].split("-")) <= set(listed)
    assert card["adjusted_rand"] == "1.0000"
    assert [topic["documents"] for topic in card["topics"]] == [50] * 4
    assert all(Fraction(topic["similarity"]) > Fraction(1, 2) for topic in card["topics"])
    assert card["documents"] == 200
    members = {topic["name"]: topic["central"] for topic in card["topics"]}
    for topic, name in enumerate(topics.names):
        assert all(found.labels[int(identity, 16)] == topic for identity in members[name])


def test_fit_again_gives_the_same_bytes_and_its_file_reads_back() -> None:
    topics, card = fit(SAMPLED, HOW)
    content = topics.to_bytes()
    again, same = fit(SAMPLED, HOW)
    assert (again.to_bytes(), same) == (content, card)
    read = Topics.from_bytes(content)
    assert read.to_bytes() == content
    assert np.array_equal(read.assign(SAMPLED.texts)[0].margins, topics.assign(SAMPLED.texts)[0].margins)


def test_fit_of_texts_without_words_leaves_them_out() -> None:
    texts = [*SAMPLED.texts.to_pylist(), "", "!?"]
    topics, card = fit(sampled(texts), HOW)
    assert (card["documents"], card["without_words"], card["languages"]) == (202, 2, False)
    assert topics.assign(pa.array(["", "the tide"], pa.large_string()))[1].tolist() == [True, False]
    with pytest.raises(TopicsError, match="none of 2 documents"):
        fit(sampled(["", "…"]), HOW)


def test_fit_looks_at_the_beginning_of_a_text_only() -> None:
    """Also where the beginning ends within a character of several bytes."""
    how = replace(HOW, characters=200)
    longer = [text[:200] + " ärger" * 900 for text in SAMPLED.texts.to_pylist()]
    short = [text[:200] for text in longer]
    assert fit(sampled(longer), how)[0].to_bytes() == fit(sampled(short), how)[0].to_bytes()


@dataclass(frozen=True)
class Lengths:
    """An embedder of floats: share of each of three letters."""

    dimension: int = 3
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def embed(self, texts: pa.LargeStringArray) -> npt.NDArray[np.float32]:
        return np.array([[text.count(letter) / 7 for letter in "aeo"] for text in texts.to_pylist()], np.float32)


def test_fit_with_another_embedder_uses_it() -> None:
    topics, card = fit(SAMPLED, replace(HOW, embedder=Lengths(), topics=2))
    assert card["embedder"] == {"class": "Lengths", "dimension": 3, "version": 1}
    assert topics.centres.shape == (2, 3)
    assert Topics.from_bytes(topics.to_bytes(), Lengths()).embedder == Lengths()
