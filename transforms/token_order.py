"""The order of documents in a token cache: by a keyed digest of the text, a constant of the format.

So the same documents give the same tokens in the same order in any layout, and neighbours have nothing in common.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np
import pyarrow as pa
from blake3 import blake3

from transforms.schema import ID

ORDER_KEY: Final = blake3(b"curate token cache: order of documents, format 1").digest()
"""Key of the keyed BLAKE3 digest that orders documents; part of the format."""


def order_of(text_digest: bytes) -> bytes:
    """Return the 16 bytes by which a document with this text digest is placed: keyed BLAKE3 of the digest."""
    return blake3(text_digest, key=ORDER_KEY).digest(16)


def orders_of(text_digests: pa.FixedSizeBinaryArray) -> pa.FixedSizeBinaryArray:
    """Return `order_of` each text digest."""
    content = b"".join([order_of(digest) for digest in text_digests.to_pylist()])
    return cast("pa.FixedSizeBinaryArray", pa.Array.from_buffers(ID, len(text_digests), [None, pa.py_buffer(content)]))


def leading_number(orders: pa.FixedSizeBinaryArray) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return the first 8 bytes of each order, big-endian: numbers that sort like the orders."""
    data = np.frombuffer(orders.buffers()[1], np.uint8)[orders.offset * 16 : (orders.offset + len(orders)) * 16]
    return data.reshape(-1, 16)[:, :8].copy().view(">u8").astype(np.uint64).reshape(-1)
