"""The fast backend of tokenizing: gigatoken, with `tokenizers` as the sworn reference.

- The reference is right by definition: ids of this backend are used only while they equal the reference's.
- Before it encodes anything it must give the canary and `adversarial_texts` the ids of the reference. Characters at
  which it does not (its tables have another Unicode version) are found by trying all, and their documents are left to
  the reference.
- While it encodes, who uses it compares a sample that the texts' digests choose (`is_sampled`).
- Control tokens are taken out of the file that it loads, so text that looks like one is text. A document in which it
  finds a control token all the same, or at which it fails, is encoded by the reference.
- It encodes in the calling thread. Its table of words grows with every new word and is thrown away in time.

Cost: 100-350 MB/s per core on text like that seen before, 10-30 on words never seen; a load takes .3-1 s. Memory: the
table, `TABLE_BYTES` at most, and what a batch needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.adversarial_texts import adversarial_texts, around, block_of, points_to_try, probe
from transforms.rare_characters import rows_with
from transforms.segmentation import text_buffers
from transforms.tokens import CANARY, Encoded, Encoder, Ids, Places, joined
from transforms.unicode_tables import CODE_POINTS

TABLE_BYTES: Final = 256 << 20
"""How much the resident memory may grow while it encodes until its table of words is thrown away."""

TEXT_BYTES: Final = 64 << 20
"""After how much text the table is thrown away where nothing says how large it is (systems without /proc)."""

SAMPLE: Final = 512
"""One document of so many is compared with the reference, chosen by the digest of its text."""

GROUP: Final = 64
"""Characters tried in one text."""

MOST_LEFT_OUT: Final = 10_000
"""More characters that are classed otherwise are no matter of Unicode versions."""

LEAST_LEFT_OUT: Final = 0x800
"""The first character that can be left out: those before are in every document."""

_STATM: Final = Path("/proc/self/statm")
_PAGE: Final = 4096
_NOTHING: Final[dict[str, int]] = {}


class NoFastBackendError(RuntimeError):
    """The fast backend cannot be used with this tokenizer, or gives other ids; the message says why."""


def backend_name() -> str | None:
    """Return name and version of the fast backend, as "gigatoken 0.10.0", or None where it is not installed."""
    try:
        return f"gigatoken {version('gigatoken')}"
    except PackageNotFoundError:
        return None


def is_sampled(text_digests: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Return which documents are compared with the reference; `text_digests` has 16 bytes per row."""
    leading = np.ascontiguousarray(text_digests[:, :8]).view(">u8").reshape(-1)
    return np.asarray(leading < np.uint64((1 << 64) // SAMPLE), np.bool_)


class FastEncoder:
    """Encodes as `reference` does, faster.

    Attributes:
        reference: what is right by definition.
        name: of the backend, with its version.
        left_out: code points that it classes otherwise; None until it was tried out.
    """

    def __init__(self, reference: Encoder) -> None:
        """Load the backend; `try_out` comes before anything is encoded.

        Raises:
            NoFastBackendError: it is not installed, or refuses the tokenizer.
        """
        name = backend_name()
        if name is None:
            raise NoFastBackendError("gigatoken is not installed: pip install 'curate[fast]'")
        self.reference, self.name = reference, name
        self._content = without_controls(reference.file.content, reference.file.controls)
        self._grown = self._seen = 0
        self._table = np.zeros(CODE_POINTS, np.bool_)
        self.left_out: tuple[int, ...] | None = None
        try:
            self._model = self._load()
        except BaseException as error:  # panics of the library are no Exception
            raise NoFastBackendError(f"{name} refuses the tokenizer: {_words(error)}") from None

    def try_out(self, left_out: tuple[int, ...] | None = None) -> None:
        """Compare with the reference on the canary and on texts made for it, once.

        `left_out` is what another process found; None: found here, which takes a second.

        Raises:
            NoFastBackendError: it gives other ids.
        """
        if self.left_out is not None and left_out in (None, self.left_out):
            return
        self.left_out = self._learn() if left_out is None else left_out
        self._table[:] = False
        self._table[list(self.left_out)] = True
        texts = [CANARY, *adversarial_texts(self.reference.file.added)]
        if wrong := self._differing(texts):
            raise NoFastBackendError(
                f"{self.name} gives {texts[wrong[0]][:60]!r} other ids than the tokenizers library"
            )

    def encode_column(self, texts: pa.Array) -> Encoded:
        """Return the ids of a column of texts, as the reference's `encode_batch` does.

        Raises:
            TokenizerError: the ids break the contract: a defect, of the tokenizer or of this package.
        """
        documents: list[bytes] = pc.cast(texts, pa.large_binary()).to_pylist()
        found = self._encoded(documents) if documents else None
        if found is None:
            return self.reference.encode_batch(texts.to_pylist())
        ids, offsets = found
        left = self._left_to_reference(texts, ids, offsets)
        if len(left):
            ids, offsets = self._patched(documents, ids, offsets, left)
        reference, special = self.reference, self.reference.special_text
        hits = [_NOTHING] * len(documents)
        for row in _rows_with_beginnings(texts, special.beginnings):
            hits[row] = special.count(documents[row].decode())
        return Encoded(*joined(ids, offsets, reference.bos, reference.eos), tuple(hits))

    def _encoded(self, documents: list[bytes]) -> tuple[Ids, Places] | None:
        """Return ids and offsets without markers, or None where the library fails."""
        before = _resident()
        try:
            layout = self._model.encode_batch(documents, parallel=False).layout
            return np.asarray(layout.content.data), np.asarray(layout.offsets.data).astype(np.int64)
        except BaseException as error:
            _words(error)
            return None
        finally:
            self._forget(before, sum(map(len, documents)))

    def _left_to_reference(self, texts: pa.Array, ids: Ids, offsets: Places) -> list[int]:
        """Return the rows that hold a character of `left_out`, or of which a control token came."""
        rows = set[int]()
        if self.left_out:
            rows.update(np.flatnonzero(rows_with(texts, self._table)).tolist())
        if len(found := self.reference.forbidden_places(ids)):
            rows.update((np.searchsorted(offsets, found, side="right") - 1).tolist())
        return sorted(rows)

    def _patched(self, documents: list[bytes], ids: Ids, offsets: Places, rows: list[int]) -> tuple[Ids, Places]:
        """Return ids and offsets with those of the reference for `rows`."""
        parts, lengths, start = [], np.diff(offsets), 0
        for row in rows:
            right = self.reference.encode_plain(documents[row].decode())
            parts += [ids[start : offsets[row]], right]
            lengths[row], start = len(right), offsets[row + 1]
        return np.concatenate([*parts, ids[start:]]), np.concatenate([[0], np.cumsum(lengths)])

    def differing(self, texts: Iterable[str], found: Iterable[Ids]) -> int:
        """Return how many of `texts` have other ids by the reference than `found`, BOS and EOS included."""
        return sum(not np.array_equal(self.reference.encode(text), ids) for text, ids in zip(texts, found, strict=True))

    def _load(self) -> Any:
        from gigatoken import Tokenizer

        return Tokenizer.from_json(self._content)

    def _learn(self) -> tuple[int, ...]:
        """Return the code points that the backend classes otherwise; where one of a large block is, all of the block.

        Raises:
            NoFastBackendError: there are too many, or some that are in every text.
        """
        content = probe(self._content)
        found = tuple(_found_by(self._differing)) if content is None else _found_by_probe(content)
        if len(found) > MOST_LEFT_OUT or min(found, default=LEAST_LEFT_OUT) < LEAST_LEFT_OUT:
            raise NoFastBackendError(f"{self.name} has other ids for {len(found):,} characters")
        return tuple(sorted({other for point in found for other in block_of(point)}))

    def _differing(self, texts: list[str]) -> list[int]:
        """Return the places of texts that have other ids by the reference."""
        if not texts:
            return []
        found, expected = self.encode_column(pa.array(texts, pa.large_string())), self.reference.encode_batch(texts)
        return [row for row in range(len(texts)) if not np.array_equal(found.document(row), expected.document(row))]

    def _forget(self, before: int | None, size: int) -> None:
        """Throw the table of words away when it has grown too large."""
        after = _resident()
        self._seen += size
        self._grown += 0 if before is None or after is None else max(0, after - before)
        if self._grown > TABLE_BYTES or (before is None and self._seen > TEXT_BYTES):
            self._model, self._grown, self._seen = self._load(), 0, 0


def _found_by(differing: Callable[[list[str]], list[int]]) -> list[int]:
    """Return the code points around which `differing` finds texts that differ."""
    points = points_to_try()
    groups = [points[first : first + GROUP] for first in range(0, len(points), GROUP)]
    wrong = differing(["".join(map(around, group)) for group in groups])
    singles = [point for number in wrong for point in groups[number]]
    found = [singles[place] for place in differing([around(point) for point in singles])]
    return singles if wrong and not found else found


@lru_cache(maxsize=8)
def _found_by_probe(content: str) -> tuple[int, ...]:
    """Return the code points around which the two libraries cut into other words; once per pattern and process.

    Raises:
        NoFastBackendError: the backend refuses the probe.
    """
    from gigatoken import Tokenizer as Fast
    from tokenizers import Tokenizer as Reference

    try:
        fast, reference = Fast.from_json(content), Reference.from_str(content)
    except BaseException as error:
        raise NoFastBackendError(f"{backend_name()} refuses a probe: {_words(error)}") from None

    def differing(texts: list[str]) -> list[int]:
        if not texts:
            return []
        layout = fast.encode_batch([text.encode() for text in texts], parallel=False).layout
        ids, offsets = np.asarray(layout.content.data), np.asarray(layout.offsets.data)
        expected = reference.encode_batch_fast(texts, add_special_tokens=False)
        return [row for row, right in enumerate(expected) if ids[offsets[row] : offsets[row + 1]].tolist() != right.ids]

    return tuple(_found_by(differing))


def without_controls(content: str, controls: Any) -> str:
    """Return a tokenizer.json without the added tokens that are control tokens; their ids in the model stay."""
    value = json.loads(content)
    value["added_tokens"] = [token for token in value["added_tokens"] if token["content"] not in controls]
    return json.dumps(value)


def _rows_with_beginnings(texts: pa.Array, beginnings: tuple[str, ...]) -> list[int]:
    """Return the rows that hold the first two bytes of one of `beginnings`, and perhaps it."""
    data, bounds = text_buffers(texts)
    data = data[bounds[0] : bounds[-1]]
    rows = set[int]()
    for beginning in {text.encode()[:2] for text in beginnings}:
        there = data == beginning[0]
        if len(beginning) == 2:
            there = there[:-1] & (data[1:] == beginning[1])
        rows.update((np.searchsorted(bounds, np.flatnonzero(there) + bounds[0], side="right") - 1).tolist())
    return sorted(rows)


def _resident() -> int | None:
    """Return the resident memory of this process in bytes, or None where nothing says."""
    try:
        return int(_STATM.read_bytes().split(b" ")[1]) * _PAGE
    except OSError:
        return None


def _words(error: BaseException) -> str:
    """Return an error of the library in words; what stops a process is raised again."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        raise error
    return f"{type(error).__name__}: {error}"
