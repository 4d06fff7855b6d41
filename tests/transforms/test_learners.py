"""Learners: each tells the classes apart, gives the same bytes again, and is read back as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.transforms.classifier_corpus import SMALL, candidates, corpus, menu, prose, trained
from transforms.embedding import HashedTfidf
from transforms.fitted import FittedError
from transforms.learners import EmbeddedLinear, FastText, HashedLinear, Learner, one_line, scorer_of
from transforms.model_file import ModelFile, read_model
from transforms.training_set import examples_of


@dataclass(frozen=True)
class Stops:
    """Two numbers of a text: its full stops and its line feeds."""

    dimension: int = 2
    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def embed(self, texts: pa.LargeStringArray) -> npt.NDArray[Any]:
        return np.array([[text.count("."), text.count("\n")] for text in texts.to_pylist()], np.float32)


FAST = FastText(dimension=4, epochs=8, buckets=1000)
LEARNERS: dict[str, Learner] = {
    "hashed": SMALL,
    "fasttext": FAST,
    "embedded": EmbeddedLinear(Stops()),
    "tfidf": EmbeddedLinear(HashedTfidf(64)),
}


def embedder(learner: Learner) -> Any:
    return learner.embedder if isinstance(learner, EmbeddedLinear) else None


@pytest.mark.parametrize("name", LEARNERS)
def test_learner_tells_the_classes_apart_and_repeats_to_the_byte(name: str) -> None:
    learner = LEARNERS[name]
    made = trained(learner)
    assert made == trained(learner)
    area = made.card["auc"]["pooled"]
    assert area[0] > 0.95 * area[1]
    scorer = scorer_of(read_model(made.content), embedder(learner))
    odds = scorer.odds(pa.array([prose(7000), menu(7001)], pa.large_string()))
    assert odds[0] > 0 > odds[1]
    assert scorer.odds(pa.array([], pa.large_string())).tolist() == []


@pytest.mark.parametrize("name", LEARNERS)
def test_scores_do_not_depend_on_the_batch(name: str) -> None:
    learner = LEARNERS[name]
    scorer = scorer_of(read_model(trained(learner).content), embedder(learner))
    texts = [prose(1), "", menu(2), "中文 ภาษา 😀", "\x00 </s> __label__0 \n", "x" * 900]
    alone = [int(scorer.odds(pa.array([text], pa.large_string()))[0]) for text in texts]
    assert scorer.odds(pa.array(texts, pa.large_string())).tolist() == alone


def test_epochs_take_other_orders_that_are_always_the_same() -> None:
    examples = examples_of(candidates(corpus(12)).slice(0, 24))
    orders = [examples.order(epoch).tolist() for epoch in range(3)]
    assert orders == [examples.order(epoch).tolist() for epoch in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    assert all(sorted(order) == list(range(len(examples.labels))) for order in orders)


def test_text_cannot_pass_for_a_label_or_end_a_line_of_fasttext() -> None:
    lines = one_line(pa.array(["a\nb\r\x00 __label__1 </s>c"], pa.large_string())).to_pylist()
    assert lines == ["a ¶ b    1  c"]


def test_model_file_that_is_none_or_cut_or_of_other_vectors_is_refused() -> None:
    content = trained(LEARNERS["embedded"]).content
    for wrong, message in (
        (b"{}", "is no classifier"),
        (b"\xff\xfe", "is no classifier"),
        (content[:-1], "cut short in weights"),
        (content.replace(b'"format":1', b'"format":7'), "is of format 7"),
    ):
        with pytest.raises(FittedError, match=message):
            read_model(wrong)
    for other in (None, HashedTfidf(64)):
        with pytest.raises(FittedError, match="trained on vectors of Stops 1"):
            scorer_of(read_model(content), other)
    with pytest.raises(FittedError, match="'tree' is unknown here"):
        scorer_of(ModelFile({"kind": "tree"}, {}))


def test_model_file_reads_back_to_its_bytes() -> None:
    content = trained().content
    assert read_model(content).to_bytes() == content


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="bits are a number from 10 to 24"):
        HashedLinear(bits=9)
    with pytest.raises(ValueError, match="all numbers are positive"):
        FastText(dimension=0)
