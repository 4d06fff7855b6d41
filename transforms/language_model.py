"""A fastText classifier of languages, and what it says of a batch of texts.

Invariants: the model file is checked by its digest before it is used. What is said of a text depends on its first
`characters` code points: they are made one line (a line feed becomes a space, so that no words are glued), `</s>`
becomes a space too (fastText takes that token for the end of the line and reads no further), and a text without a
letter has no language. Scores are counted in ten-thousandths and capped at one (fastText's softmax gives 1.00001), so
that they compare exactly with decimal thresholds; they come of floating-point sums in a library, however, and are
promised for one CPU family and lock file only.

Cost: about 8,000 documents/s on the first 2,000 code points, one thread; 26,000 on the first 500, 1,300 on whole texts;
all but a few percent of it is fastText's. The model takes 1 MB and is loaded once per process.

Source: Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification"; lid.176 is Facebook's, CC-BY-SA-3.0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.language_tags import language_of
from transforms.scripts import Scripts, find_scripts
from transforms.segmentation import text_buffers

DEFAULT_MODEL_NAME: Final = "lid.176.ftz"
DEFAULT_MODEL_SHA256: Final = "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
"""The pinned model: lid.176.ftz as published by fastText, 938,013 bytes."""

UNIT: Final = 10_000
"""Scores are counted in ten-thousandths."""

LABEL_PREFIX: Final = "__label__"


class ModelError(RuntimeError):
    """A model file is not there, is another one than the one asked for, or lacks a language that was asked for."""


class Model(Protocol):
    """What is used of a fastText model."""

    def predict(self, text: list[str]) -> tuple[list[Sequence[str]], list[Sequence[float]]]:
        """Return labels and probabilities, most probable first, of each line."""
        ...

    def get_labels(self) -> list[str]:
        """Return all labels."""
        ...


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model says of each text: raw label and score in ten-thousandths, None without letters; its script."""

    labels: list[str | None]
    scores: list[int | None]
    scripts: Scripts

    def languages(self) -> list[str | None]:
        """Return the language subtags of the labels."""
        known = {label: language_of(label) for label in set(self.labels) if label is not None}
        return [None if label is None else known[label] for label in self.labels]


def data_folder() -> Path:
    """Return the folder of the user that models are put into: ~/.local/share/curate."""
    return Path.home() / ".local" / "share" / "curate"


def default_model() -> Path:
    """Return the place of the pinned lid.176.ftz; `curate fetch lid` puts it there."""
    return data_folder() / DEFAULT_MODEL_NAME


def digest_of(model: Path | None) -> str:
    """Return the SHA-256 of the file `model`, of the pinned model where it is None.

    Raises:
        ModelError: the file is not there.
    """
    if model is None:
        return DEFAULT_MODEL_SHA256
    if not model.is_file():
        fetch = "; fetch it with `curate fetch lid`" if model == default_model() else ""
        raise ModelError(f"the language model {model} is not there{fetch}")
    with model.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=4)
def load(model: Path, digest: str) -> Model:
    """Return the fastText model of the file `model`, loaded once per process.

    Raises:
        ModelError: the file is not there, or its SHA-256 is not `digest`.
    """
    import fasttext  # here, because importing it costs what users of other transforms need not pay

    found = digest_of(model)
    if found != digest:
        raise ModelError(f"{model} has the SHA-256 {found}, expected {digest}; remove it and fetch it again")
    return cast(Model, fasttext.load_model(str(model)))


def languages_known(model: Model) -> frozenset[str]:
    """Return the language subtags of the labels of `model`."""
    return frozenset(language_of(label.removeprefix(LABEL_PREFIX)) for label in model.get_labels())


def classify(model: Model, texts: pa.LargeStringArray, characters: int) -> Answers:
    """Return what `model` says of the first `characters` code points of each of `texts`."""
    lines = pc.utf8_slice_codeunits(texts, 0, characters)
    for end in ("\n", "</s>"):
        lines = pc.replace_substring(lines, end, " ")
    data, bounds = text_buffers(lines)
    scripts = find_scripts(data, bounds[:-1], bounds[1:])
    rows = np.flatnonzero(scripts.weight)
    labels: list[str | None] = [None] * len(texts)
    scores: list[int | None] = [None] * len(texts)
    found, probabilities = model.predict(lines.take(pa.array(rows)).to_pylist())
    for row, label, probability in zip(rows.tolist(), found, probabilities, strict=True):
        if len(label):
            labels[row] = label[0].removeprefix(LABEL_PREFIX)
            scores[row] = min(UNIT, int(float(probability[0]) * UNIT + 0.5))
    return Answers(labels, scores, scripts)
