"""What mixtures ask of a token cache: an immutable stream of tokens, and where documents begin in it.

`curate`'s token caches satisfy this protocol; so may any other store of tokens.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@runtime_checkable
class Cache(Protocol):
    """Tokens of one component, documents one after the other without anything in between."""

    @property
    def name(self) -> str:
        """Name of the component."""
        ...

    @property
    def digest(self) -> str:
        """Content digest over tokens and document borders: equal digests, equal content."""
        ...

    @property
    def tokenizer(self) -> str:
        """Digest of the tokenizer file."""
        ...

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        ...

    @property
    def documents(self) -> int:
        """Number of documents."""
        ...

    @property
    def vocabulary(self) -> int:
        """Number of token ids: each token is below it."""
        ...

    @property
    def eos(self) -> int | None:
        """Id of the token that ends documents, if there is one."""
        ...

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return tokens [start, stop) as uint16 or uint32; 0 ≤ start ≤ stop ≤ `tokens`."""
        ...

    def read_many(self, ranges: list[tuple[int, int]]) -> list[npt.NDArray[Any]]:
        """Return the tokens of each (start, stop) of `ranges`, asked for at once: from a bucket, one round trip."""
        ...

    def read_untrained(self, ranges: list[tuple[int, int]]) -> list[npt.NDArray[np.uint8]] | None:
        """Return for each token of `ranges` 1 if it is no target of training, else 0; None where all are targets."""
        ...

    def borders(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the offsets in [start, stop) at which documents begin, ascending (repeated for empty documents)."""
        ...

    def text_digests(self) -> npt.NDArray[np.uint8]:
        """Return the 16-byte digests of the texts, shape (documents, 16), in any order."""
        ...
