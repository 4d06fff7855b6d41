"""The column `not_trained`: places of a text that are read in training and are no targets of it.

`Decontaminate(…, action="mask")` writes it for benchmark items; a transform of your own may, for what another speaker
says in a dialogue: `not_trained(spans, text)` makes a value. Token caches keep it as the array `untrained`, from which
loaders make the loss mask. A token is no target if any of its characters lies in a span.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.duplicates import text_digests
from transforms.outcome import SchemaError
from transforms.tokens import Encoder

NOT_TRAINED: Final = pa.field("not_trained", pa.large_string())
"""Null where all of a text is trained on: canonical JSON of `spans`, a list of [start, end) in code points, ascending
and apart, of text that is no target of training, and `text`, the digest of the text that they are places in (16 bytes,
hex). A transform that changes the text has to come before."""


def not_trained(spans: Sequence[Sequence[int]], text: str | bytes) -> str:
    """Return a value of the column `NOT_TRAINED`: `spans` of [start, end) code points of `text` (or its digest).

    Raises:
        ValueError: spans do not ascend, touch or overlap, or are empty.
    """
    flat = [place for start, end in spans for place in (start, end)]
    if any(left >= right for left, right in pairwise(flat)) or (flat and flat[0] < 0):
        raise ValueError(f"spans are [start, end) of code points, ascending and apart, got {list(spans)[:5]}")
    digest = text if isinstance(text, bytes) else text_digests(pa.array([text], pa.large_string()))[0].as_py()
    return canonical_json({"spans": [list(span) for span in spans], "text": digest.hex()})


def untrained_tokens(encoder: Encoder, text: str, value: str, digest: bytes, ids: npt.NDArray[np.integer]) -> list[int]:
    """Return the tokens of `text` that are no targets by `value`: first, one after the last, first, … ascending.

    Args:
        encoder: what `ids` were made with.
        text: of the document.
        value: of the column `NOT_TRAINED`.
        digest: of `text`.
        ids: of `text`, BOS and EOS included.

    Raises:
        SchemaError: `value` is none, or its places are those of another text.
    """
    try:
        said = json.loads(value)
        spans, of = np.array(said["spans"], np.int64).reshape(-1, 2), bytes.fromhex(said["text"])
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaError(f"{NOT_TRAINED.name} holds {value[:60]!r}: make it by not_trained(spans, text)") from error
    if of != digest:
        raise SchemaError(
            f"{NOT_TRAINED.name} has places in the text {of.hex()}, which was changed afterwards to {digest.hex()}: "
            "mask after the last transform that edits texts"
        )
    places = encoder.encode_with_offsets(text)
    if not np.array_equal(places.ids, ids):
        raise SchemaError(f"the tokens of the text {digest.hex()} have no places in it: its tokenizer gives others")
    return _ranges(spans, places.starts, places.ends)


def _ranges(spans: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> list[int]:
    """Return the runs of tokens with a character in a span: first, one after the last, …"""
    following = np.searchsorted(spans[:, 1], starts, side="right")  # the first span that ends after the token begins
    reached = np.append(spans[:, 0], np.iinfo(np.int64).max)[following] < ends
    edges = np.flatnonzero(np.diff(np.concatenate([[False], reached & (ends > starts), [False]])))
    return [int(edge) for edge in edges]
