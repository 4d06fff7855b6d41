"""Learners of classifiers: how examples become a model, and how a model scores texts.

- `HashedLinear`, the default: logistic regression on hashed features (`transforms.text_features`), in integers where it
  scores: the same scores on any CPU, trained to the same bytes anywhere.
- `FastText`: fastText's supervised classifier (Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification"),
  one thread, fixed seed. It computes in floats: scores are rounded, and promised for one CPU family and lock file.
- `EmbeddedLinear`: logistic regression on the vectors of any embedder (`transforms.embedding`), rounded to int8.

Each says the log-odds of the positive class of a window of text in units of 2^-20 (`transforms.logistic`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.embedding import Embedder, directions
from transforms.fitted import FittedError, FittedFile
from transforms.logistic import DESCENT, MILLI, UNIT, Descent, Integers, Linear, log_odds, score_of, train
from transforms.model_file import ModelFile, read_model
from transforms.text_features import Features, common_words, features_of
from transforms.word_hashes import Hashes, mix

HASHED: Final = "hashed linear"
FASTTEXT: Final = "fasttext"
EMBEDDED: Final = "embedded linear"

_AT_ONCE: Final = 512  # windows whose features are held at once
_LABELS: Final = ("__label__0", "__label__1")


@dataclass(frozen=True, slots=True)
class Examples:
    """Windows of text to learn from: label 0 or 1, and how much each counts; the order is that of the windows."""

    texts: pa.LargeStringArray
    labels: npt.NDArray[np.int8]
    importance: npt.NDArray[np.float64]

    def order(self, epoch: int) -> Integers:
        """Return the order of an epoch: one of a fixed sequence of permutations."""
        drawn = [mix(np.uint64(epoch << 32 | place)) for place in range(len(self.labels))]
        return np.argsort(np.array(drawn, np.uint64), kind="stable").astype(np.int64)


@runtime_checkable
class Scorer(Protocol):
    """A loaded model."""

    def odds(self, windows: pa.LargeStringArray) -> Integers:
        """Return the log-odds of each window in units of 2^-20."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A frozen dataclass whose fields say how a model is trained."""

    version: ClassVar[int]
    libraries: ClassVar[tuple[str, ...]]

    def fit(self, examples: Examples, width: int) -> ModelFile:
        """Return the model of `examples`, windows of `width` code points."""
        ...


@dataclass(frozen=True, slots=True)
class HashedLinear:
    """Logistic regression on hashed features.

    Args:
        bits: 2^bits buckets, 10 to 24; a weight takes 4 bytes.
        common: words that stand for themselves in the form of a text: those in most windows.
        descent: how weights are found.

    Raises:
        ValueError: a number is out of its range.
    """

    bits: int = 18
    common: int = 256
    descent: Descent = DESCENT

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not 10 <= self.bits <= 24 or not 0 <= self.common <= 1 << 16:
            raise ValueError(f"{self}: bits are a number from 10 to 24, common words at most 65,536")

    def fit(self, examples: Examples, width: int) -> ModelFile:
        """Return the model of `examples`."""
        common = _most_common(examples.texts, self.common)
        linear = _descend(examples, lambda texts: features_of(texts, common, self.bits), self.bits, self.descent)
        header = {"kind": HASHED, "width": width, "bits": self.bits, "bias": linear.bias, "features": 1}
        return ModelFile(header, {"weights": linear.weights, "common": common})


@dataclass(frozen=True, slots=True)
class EmbeddedLinear:
    """Logistic regression on vectors: `Quality(model, embedder=…)` takes the same embedder."""

    embedder: Embedder
    descent: Descent = DESCENT

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def fit(self, examples: Examples, width: int) -> ModelFile:
        """Return the model of `examples`."""
        bits = max(1, (self.embedder.dimension - 1).bit_length())
        linear = _descend(examples, lambda texts: dense_features(self.embedder, texts), bits, self.descent)
        header = {"kind": EMBEDDED, "width": width, "bits": bits, "bias": linear.bias, **_named(self.embedder)}
        return ModelFile(header, {"weights": linear.weights})


@dataclass(frozen=True, slots=True)
class FastText:
    """fastText's supervised classifier, one thread; arguments are fastText's own.

    Raises:
        ValueError: a number is out of its range.
    """

    dimension: int = 16
    epochs: int = 5
    rate: float = 0.5
    word_ngrams: int = 2
    least_count: int = 1
    buckets: int = 1 << 17
    seed: int = 1

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("fasttext-community",)

    def __post_init__(self) -> None:
        numbers = (self.dimension, self.epochs, self.word_ngrams, self.least_count, self.buckets)
        if min(numbers) < 1 or not 0 < self.rate <= 10:
            raise ValueError(f"{self}: all numbers are positive, and the rate at most 10")

    def fit(self, examples: Examples, width: int) -> ModelFile:
        """Return the model of `examples`; their importance is not used, as fastText has none."""
        import fasttext

        with tempfile.TemporaryDirectory() as folder:
            lines, model = Path(folder) / "examples", Path(folder) / "model"
            with lines.open("w", encoding="utf-8", newline="\n") as file:
                order = examples.order(0)
                texts = one_line(examples.texts.take(pa.array(order))).to_pylist()
                for label, text in zip(examples.labels[order].tolist(), texts, strict=True):
                    file.write(f"{_LABELS[label]} {text}\n")
            fasttext.train_supervised(
                str(lines), dim=self.dimension, epoch=self.epochs, lr=self.rate, wordNgrams=self.word_ngrams,
                minCount=self.least_count, bucket=self.buckets, seed=self.seed, thread=1, verbose=0,
            ).save_model(str(model))  # fmt: skip
            content = np.frombuffer(model.read_bytes(), np.uint8)
        return ModelFile({"kind": FASTTEXT, "width": width}, {"model": content})


def load_scorer(file: FittedFile, embedder: Embedder | None = None) -> tuple[Scorer, ModelFile]:
    """Return the scorer of a model file, and the file; loaded once per process.

    Raises:
        FittedError: it is no classifier, or one of another embedder.
    """
    return _load(file.digest, _Source(file), cast(Any, embedder))


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A file that is equal to any other: the digest beside it says which it is."""

    file: FittedFile = field(compare=False)

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Source)


@lru_cache(maxsize=8)
def _load(digest: str, source: _Source, embedder: Any) -> tuple[Scorer, ModelFile]:
    model = read_model(source.file.read(), str(source.file))
    return scorer_of(model, embedder), model


def scorer_of(model: ModelFile, embedder: Embedder | None = None) -> Scorer:
    """Return the scorer of a model.

    Raises:
        FittedError: this curate knows no such kind, or the model is one of another embedder.
    """
    if model.kind == HASHED:
        return HashedScorer(model)
    if model.kind == FASTTEXT:
        return FastTextScorer(model)
    if model.kind != EMBEDDED:
        raise FittedError(f"a model of the kind {model.kind!r} is unknown here: use the version that made it")
    if embedder is None or any(model.header[name] != value for name, value in _named(embedder).items()):
        raise FittedError(
            f"the model was trained on vectors of {model.header['embedder']} {model.header['embedder_version']} "
            f"with {model.header['dimension']} numbers; give it as Quality(model, embedder=…), not {embedder!r}"
        )
    return EmbeddedScorer(model, embedder)


class HashedScorer:
    """Scores by hashed features."""

    def __init__(self, model: ModelFile) -> None:
        """Take the weights of `model`."""
        if model.header["features"] != 1:
            raise FittedError(f"the model has features of version {model.header['features']}: train it again")
        self.linear = Linear(model.arrays["weights"], int(model.header["bias"]))
        self.common = np.ascontiguousarray(model.arrays["common"])
        self.bits = int(model.header["bits"])

    def odds(self, windows: pa.LargeStringArray) -> Integers:
        """Return the log-odds of each window in units of 2^-20."""
        parts = [log_odds(self.linear, features_of(part, self.common, self.bits)) for part in _portions(windows)]
        return np.concatenate([np.zeros(0, np.int64), *parts])


class EmbeddedScorer:
    """Scores by vectors."""

    def __init__(self, model: ModelFile, embedder: Embedder) -> None:
        """Take the weights of `model`."""
        self.linear = Linear(model.arrays["weights"], int(model.header["bias"]))
        self.embedder = embedder

    def odds(self, windows: pa.LargeStringArray) -> Integers:
        """Return the log-odds of each window in units of 2^-20."""
        parts = [log_odds(self.linear, dense_features(self.embedder, part)) for part in _portions(windows)]
        return np.concatenate([np.zeros(0, np.int64), *parts])


class FastTextScorer:
    """Scores by fastText."""

    def __init__(self, model: ModelFile) -> None:
        """Load the fastText model in `model`, which goes through a file."""
        import fasttext

        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(model.arrays["model"].tobytes())
            file.flush()
            self.model: Any = fasttext.load_model(file.name)

    def odds(self, windows: pa.LargeStringArray) -> Integers:
        """Return the log-odds of each window in units of 2^-20, from probabilities rounded to millionths."""
        lines = cast(list[str], one_line(windows).to_pylist())
        labels, chances = self.model.predict(lines, k=2) if lines else ([], [])
        scores = [_positive(*found) for found in zip(labels, chances, strict=True)]
        return np.array(scores, np.int64) * UNIT // MILLI


def _positive(labels: Any, chances: Any) -> int:
    """Return the score of the positive label, 0 where fastText says nothing."""
    for label, chance in zip(labels, chances, strict=True):
        if label in _LABELS:
            millionths = int(float(chance) * 1_000_000 + 0.5)
            return score_of(millionths if label == _LABELS[1] else 1_000_000 - millionths)
    return 0


def one_line(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return `texts` as fastText reads them: a line feed becomes the word "¶", what it takes for a sign a space."""
    lines: Any = texts
    for sign, instead in (("\n", " ¶ "), ("\r", " "), ("\0", " "), ("__label__", " "), ("</s>", " ")):
        lines = pc.replace_substring(lines, sign, instead)
    return cast(pa.LargeStringArray, lines)


def dense_features(embedder: Embedder, texts: pa.LargeStringArray) -> Features:
    """Return the vectors of `texts` as features: bucket i has the i-th number."""
    rows = directions(embedder, texts).astype(np.int16)
    offsets = np.arange(len(texts) + 1, dtype=np.int64) * embedder.dimension
    buckets = np.tile(np.arange(embedder.dimension, dtype=np.uint32), len(texts))
    return Features(offsets, buckets, rows.reshape(-1), (rows.astype(np.int64) ** 2).sum(axis=1))


def _most_common(texts: pa.LargeStringArray, most: int) -> Hashes:
    """Return, sorted, the hashes of the `most` words that stand in most of `texts`."""
    totals: dict[int, int] = {}
    for part in _portions(texts):
        for value, count in zip(*(array.tolist() for array in common_words(part)), strict=True):
            totals[value] = totals.get(value, 0) + count
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:most]
    return np.array(sorted(value for value, _ in ordered), np.uint64)


def _descend(
    examples: Examples, featured: Callable[[pa.LargeStringArray], Features], bits: int, descent: Descent
) -> Linear:
    def batches(epoch: int) -> Iterator[tuple[Features, npt.NDArray[np.int8], npt.NDArray[np.float64]]]:
        order = examples.order(epoch)
        for first in range(0, len(order), _AT_ONCE):
            rows = order[first : first + _AT_ONCE]
            yield featured(examples.texts.take(pa.array(rows))), examples.labels[rows], examples.importance[rows]

    return train(batches, bits, descent)


def examples_portions(examples: Examples) -> Iterator[tuple[pa.LargeStringArray, npt.NDArray[np.int8]]]:
    """Yield the windows of `examples` with their labels, some at a time."""
    for first in range(0, len(examples.labels), _AT_ONCE):
        yield examples.texts.slice(first, _AT_ONCE), examples.labels[first : first + _AT_ONCE]


def _portions(texts: pa.LargeStringArray) -> Iterator[pa.LargeStringArray]:
    for first in range(0, len(texts), _AT_ONCE):
        yield texts.slice(first, _AT_ONCE)


def _named(embedder: Embedder) -> dict[str, Any]:
    return {
        "embedder": type(embedder).__name__,
        "embedder_version": int(embedder.version),
        "dimension": int(embedder.dimension),
    }
