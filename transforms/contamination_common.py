"""Phrases that are common in a corpus, as the index of benchmarks looks words up: five words, as one hash.

`Decontaminate(…, common=phrases)` lets no word count that only such phrases cover: "the quick brown fox jumps" names
no item where every tenth page has it. A phrase is common if more than one text in `SHARE` has it, and at least `LEAST`
texts, of those in which no item with that phrase is found (`PhraseCounts`): what was leaked a thousand times does not
become common by that. Counted are different texts: a page that was copied a thousand times counts once per shard.

Invariants: integers; the sum of counts does not depend on order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from transforms.fitted import FittedError, FittedFile

LEAST: Final = 10
"""Texts that have a common phrase, at least."""
SHARE: Final = 1_000
"""One text in so many has a common phrase, at least."""

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases that are common in a corpus of `texts` texts: their hashes, ascending, as little-endian uint64."""

    content: bytes = field(repr=False)
    texts: int

    @property
    def digest(self) -> str:
        """BLAKE3 of the hashes."""
        return blake3(self.content).hexdigest()

    def hashes(self) -> Hashes:
        """Return the hashes, ascending."""
        return np.frombuffer(self.content, "<u8").astype(np.uint64)

    def description(self) -> dict[str, Any]:
        """Return what stands for it in keys."""
        return {"class": "Phrases", "digest": self.digest, "texts": self.texts}

    def to_bytes(self) -> bytes:
        """Return the file that `read_phrases` reads: the number of texts, then the hashes."""
        return self.texts.to_bytes(8, "little") + self.content


def read_phrases(file: FittedFile) -> Phrases:
    """Return the phrases in a file that `fit_phrases` made.

    Raises:
        FittedError: it is gone, was changed, or holds something else.
    """
    content = file.read()
    phrases = Phrases(content[8:], int.from_bytes(content[:8], "little"))
    found = phrases.hashes() if len(content) % 8 == 0 else NO_PHRASES.hashes()
    if len(content) % 8 or len(content) < 8 or (found[1:] <= found[:-1]).any():
        raise FittedError(f"{file} holds no phrases: give the file that fit_phrases made")
    return phrases


NO_PHRASES: Final = Phrases(b"", 0)
"""Nothing is common."""
