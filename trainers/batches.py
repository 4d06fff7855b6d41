"""Batches as the trainer takes them, from a plan's loader or from held-out documents.

A loader is anything with the digest of a plan and `batch(step)`, a pure function of the plan. What it gives is checked
against the configuration before it reaches the device: XLA would clamp a token beyond the vocabulary in silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from curate.configuration import ConfigurationError

Ints = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Batch(Protocol):
    """Sequences of a step, all arrays (batch, length).

    `segments` tells documents of a sequence apart, `positions` count from 0 in each, `loss_mask` is False at tokens
    that are not to be learnt as targets.
    """

    @property
    def tokens(self) -> npt.NDArray[np.integer]:
        """Token ids."""
        ...

    @property
    def segments(self) -> npt.NDArray[np.integer]:
        """Numbers of documents, from 1; equal numbers in a row are one document. 0 and below are padding."""
        ...

    @property
    def positions(self) -> npt.NDArray[np.integer]:
        """Positions within the document."""
        ...

    @property
    def loss_mask(self) -> npt.NDArray[np.bool_]:
        """Whether the token may be a target."""
        ...


class Loader(Protocol):
    """Where batches come from. One that is `Scheduled` too is asked for its updates instead."""

    @property
    def digest(self) -> str:
        """The digest of the plan: equal digests give equal batches."""
        ...

    def batch(self, step: int) -> Batch:
        """Return the batch of `step`, from 0."""
        ...


@runtime_checkable
class Scheduled(Protocol):
    """A loader of a plan whose phases may have batches and lengths of their own, as `mixtures.Loader`."""

    def update(self, number: int) -> Batch:
        """Return the batch of update `number`, from 0."""
        ...

    def tokens_before(self, number: int) -> int:
        """Return how many tokens the updates before `number` have."""
        ...


@dataclass(frozen=True, slots=True)
class Sequences:
    """A batch in memory; see `Batch`."""

    tokens: Ints
    segments: Ints
    positions: Ints
    loss_mask: Mask


def checked(batch: Batch, vocabulary: int, shape: tuple[int, int] | None = None) -> Sequences:
    """Return `batch` with its arrays as int32 and bool.

    Raises:
        ConfigurationError: the arrays have not one shape (`shape`, if given), or hold ids outside the vocabulary.
    """
    tokens, segments, positions = (np.asarray(a) for a in (batch.tokens, batch.segments, batch.positions))
    loss_mask = np.asarray(batch.loss_mask)
    expected = tokens.shape if shape is None else shape
    named = {"tokens": tokens, "segments": segments, "positions": positions, "loss_mask": loss_mask}
    for name, array in named.items():
        if array.shape != expected or array.ndim != 2:
            raise ConfigurationError(f"{name} of a batch has the shape {array.shape}, the run expects {expected}")
    if tokens.size and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary:
        raise ConfigurationError(
            f"a batch holds token ids from {tokens.min()} to {tokens.max()}, the model's vocabulary is {vocabulary}: "
            "take the vocabulary size of the tokenizer that made the caches"
        )
    return Sequences(
        tokens.astype(np.int32, copy=False),
        segments.astype(np.int32, copy=False),
        positions.astype(np.int32, copy=False),
        loss_mask.astype(np.bool_, copy=False),
    )


def read_update(loader: Loader, number: int, vocabulary: int, shape: tuple[int, int]) -> Sequences:
    """Return the checked batch of update `number`, of `shape`: (sequences, length) of a step of the plan.

    A scheduled one may have a multiple of its tokens, in rows whose length divides that of `shape`.

    Raises:
        ConfigurationError: it has another shape, or holds ids outside the vocabulary.
    """
    if not isinstance(loader, Scheduled):
        return checked(loader.batch(number), vocabulary, shape)
    batch = loader.update(number)
    rows, length = np.shape(batch.tokens)
    fits = length > 0 == shape[1] % length and rows * length % (shape[0] * shape[1]) == 0
    return checked(batch, vocabulary, (rows, length) if fits else shape)


def tokens_before(loader: Loader, number: int, shape: tuple[int, int]) -> int:
    """Return how many tokens the updates before `number` have, each of `shape` unless the loader says otherwise."""
    return loader.tokens_before(number) if isinstance(loader, Scheduled) else number * shape[0] * shape[1]


def pack(documents: Iterable[npt.NDArray[np.integer]], batch: int, length: int) -> tuple[Sequences, ...]:
    """Return held-out `documents` (token ids) end to end in batches of one shape, for validation.

    A document that meets the end of a sequence goes on in the next one as a segment of its own. What is left of the
    last batch is filled up with segment -1 outside the loss.
    """
    kept = [np.asarray(document, np.int32) for document in documents if len(document)]
    lengths = np.array([len(document) for document in kept], np.int64)
    total = int(lengths.sum())
    count = -(-total // (batch * length))
    shape = (count, batch, length)
    number = np.repeat(np.arange(len(kept)), lengths)
    place = np.arange(total)
    document_start = np.repeat(np.cumsum(lengths) - lengths, lengths)
    start = np.maximum(document_start, place - place % length)
    parts = zip(
        _filled(np.concatenate(kept) if kept else place, shape, 0),
        _filled(number, shape, -1),
        _filled(place - start, shape, 0),
        _filled(np.ones(total, np.int32), shape, 0),
        strict=True,
    )
    return tuple(Sequences(*part[:3], loss_mask=part[3].astype(np.bool_)) for part in parts)


def _filled(values: npt.NDArray[np.integer], shape: tuple[int, int, int], rest: int) -> Ints:
    """Return `values` as int32 in `shape`, what is left filled with `rest`."""
    result = np.full(shape, rest, np.int32)
    result.reshape(-1)[: len(values)] = values
    return result
