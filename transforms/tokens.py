"""Tokenizing: texts to ids with any tokenizer file, under a contract that is checked on every document.

- A tokenizer is named by the digest of its file and its policy for BOS and EOS, never by where the file lies.
- Text that looks like a control token is encoded as text, and counted (see `transforms.token_file` for which tokens
  are control tokens). For all other texts ids equal `tokenizers`' own `encode(text, add_special_tokens=False)`.
- BOS and EOS are explicit. Each document begins with the one and ends with the other, and holds no control token.
- A document is encoded whole, however long: ids depend on its text alone, not on batches or threads.
- `CANARY` has ids that are stored with what was tokenized, and compared before more is added to it or read with it.

Cost: that of the library, 2-5 MB/s per core; memory about 100 bytes per token of a batch, so give batches of some MB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from blake3 import blake3

from transforms.token_conversion import PATTERNS, from_sentencepiece, from_tiktoken
from transforms.token_file import SpecialText, TokenizerError, TokenizerFile, read_tokenizer

Ids = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]

WIDE: Final = 1 << 16
"""Largest vocabulary whose ids fit two bytes."""

CANARY: Final = (
    "The lighthouse keeper's daughter couldn't sleep; it was 03:47 on 1999-12-31, -12.5 °C.\r\n\r\n\n"
    "def größe(x, *args):\n\t\tif x <= 0x1F:    # naïve\n        return {'a': [1_000_000, 3.14e-7]}\n"
    "Ærøskøbing, Łódź, Đà Nẵng, Ελλάδα, Київ, Հայաստան, עברית, العربيّة, हिन्दी भाषा, ภาษาไทยน้ำ, ខ្មែរ\n"
    "漢字かな交じり文、テスト。中文没有空格一二三 한국어 문장입니다 e\u0301 \u00e9 ﬁ Ⅷ ½ ٣ 𝔘𝔫𝔦 \u200b\u00a0\u2028\ufeff"
    "👩\u200d🚀🏽🇳🇱 \U0010fffd \x00\x7f <|endoftext|><｜User｜><s></s>[PAD][UNK] <unk>▁Ġ!!!!????----====\n"
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa                    THE END https://example.org/?q=%20&n=1  "
)
"""A text whose ids show whether a tokenizer still does what it did."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Ids of documents: document d has `ids[offsets[d]:offsets[d + 1]]`.

    `special_text` has per document how often each control token stands in its text; nearly always empty.
    """

    ids: Ids
    offsets: Places
    special_text: tuple[Mapping[str, int], ...]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def document(self, number: int) -> Ids:
        """Return the ids of a document."""
        return self.ids[self.offsets[number] : self.offsets[number + 1]]


@dataclass(frozen=True, slots=True)
class Spans:
    """Ids of one document; token t stands for the code points `starts[t]` to `ends[t]` of its text.

    BOS and EOS are empty spans at the ends. Tokens that share a character each have the whole of it.
    """

    ids: Ids
    starts: Places
    ends: Places


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A tokenizer file, and what marks the ends of documents.

    Args:
        path: a tokenizer.json, a SentencePiece model (.model), or ranks of tiktoken (.tiktoken), of which a
            tokenizer.json is made (`transforms.token_conversion`); where it lies is no part of the identity.
        bos: token that each document begins with, as "<|begin|>"; None for none.
        eos: token that each document ends with; None for none.
        pattern: of ranks: how texts are cut into words, "cl100k_base" or a regular expression.
        special: of ranks: text of each special token → id.
        digest: not an argument: BLAKE3 of the tokenizer.json, which with `bos` and `eos` is the identity.

    Raises:
        TokenizerError: the file is not there, or cannot be converted.
    """

    path: Path | str = field(compare=False, metadata={"key": False})
    bos: str | None = None
    eos: str | None = None
    pattern: str = field(default="", compare=False, metadata={"key": False})
    special: Mapping[str, int] = field(default_factory=dict, compare=False, metadata={"key": False})
    digest: str = field(default="", init=False)

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("tokenizers",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "digest", blake3(self.content()).hexdigest())

    def content(self) -> bytes:
        """Return the tokenizer.json.

        Raises:
            TokenizerError: the file is not there, or cannot be converted.
        """
        path = Path(self.path)
        content = _read(path)
        try:
            if path.suffix == ".model":
                return _of_sentencepiece(content)
            if path.suffix == ".tiktoken":
                return _of_ranks(content, self.pattern, tuple(self.special.items()))
        except TokenizerError as error:
            raise TokenizerError(f"{path}: {error}") from None
        return content

    def encoder(self) -> Encoder:
        """Return what encodes, loaded once per process.

        Raises:
            TokenizerError: the file was changed, is no tokenizer.json, or has no such BOS or EOS.
        """
        return _load(self, Path(self.path))

    def __str__(self) -> str:
        return f"{Path(self.path).name} ({self.digest[:16]}), BOS {self.bos or 'none'}, EOS {self.eos or 'none'}"


def library_version() -> str:
    """Return name and version of the library that defines ids, as "tokenizers 0.23.3"."""
    return f"tokenizers {version('tokenizers')}"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TokenizerError(
            f"the tokenizer {path}: {error.strerror}; give the path of a tokenizer.json, .model or .tiktoken"
        ) from None


@lru_cache(maxsize=4)
def _of_sentencepiece(content: bytes) -> bytes:
    return from_sentencepiece(content)


@lru_cache(maxsize=4)
def _of_ranks(content: bytes, pattern: str, special: tuple[tuple[str, int], ...]) -> bytes:
    if not pattern:
        names = ", ".join(PATTERNS)
        raise TokenizerError(f"ranks do not say how texts are cut into words: give pattern=, one of {names}, or yours")
    return from_tiktoken(content, pattern, dict(special))


@lru_cache(maxsize=4)
def _load(tokenizer: Tokenizer, path: Path) -> Encoder:
    content = tokenizer.content()
    if (found := blake3(content).hexdigest()) != tokenizer.digest:
        raise TokenizerError(f"{path} has the digest {found}, it had {tokenizer.digest} when the tokenizer was named")
    bos, eos = tokenizer.bos, tokenizer.eos
    try:
        return Encoder(read_tokenizer(content, [marker for marker in (bos, eos) if marker is not None]), bos, eos)
    except TokenizerError as error:
        raise TokenizerError(f"{path}: {error}") from None


class Encoder:
    """A loaded tokenizer: `encode_batch` is what caches are made with; `Tokenizer.encoder` makes one.

    Attributes:
        bos: id of BOS, or None.
        eos: id of EOS, or None.
        vocabulary: highest id + 1.
        controls: text of each control token → id.
        unknown: id of what the model cannot encode, or None.
        dtype: uint16 where all ids fit, else uint32.
        file: what its tokenizer.json says.
        special_text: counts text that looks like a control token.
    """

    def __init__(self, file: TokenizerFile, bos: str | None, eos: str | None) -> None:
        """Load `file`, whose control tokens have `bos` and `eos` among them.

        Raises:
            TokenizerError: the library refuses the file.
        """
        import tokenizers  # here, because importing it costs what users of other transforms need not pay

        try:
            self._model: Any = tokenizers.Tokenizer.from_str(file.content)
        except Exception as error:  # the library raises bare exceptions, and panics that are BaseException are its own
            raise TokenizerError(f"the tokenizers library refuses it: {error}") from None
        self._model.encode_special_tokens = True  # as text
        self.vocabulary, self.controls, self.unknown = file.vocabulary, file.controls, file.unknown
        self.bos = None if bos is None else file.controls[bos]
        self.eos = None if eos is None else file.controls[eos]
        self.dtype: np.dtype[Any] = np.dtype(np.uint16 if file.vocabulary <= WIDE else np.uint32)
        self.file, self.special_text = file, SpecialText(tuple(file.controls))
        self._forbidden = np.zeros(max(1, file.vocabulary), np.bool_)
        self._forbidden[[index for index in file.controls.values() if index != file.unknown]] = True
        self._forbidden[[index for index in (self.bos, self.eos) if index is not None]] = True
        self._names = {index: text for text, index in file.controls.items()}
        self._allowed = longest_gap(np.flatnonzero(self._forbidden), file.vocabulary)

    @property
    def forbidden(self) -> tuple[int, ...]:
        """Ids that no text becomes: those of all control tokens but the one for what the model cannot encode."""
        return tuple(np.flatnonzero(self._forbidden).tolist())

    def encode_batch(self, texts: Sequence[str]) -> Encoded:
        """Return the ids of `texts`, BOS and EOS included.

        Raises:
            TokenizerError: the ids break the contract: a defect, of the tokenizer or of this package.
        """
        before = [] if self.bos is None else [np.array([self.bos], np.uint32)]
        after = [] if self.eos is None else [np.array([self.eos], np.uint32)]
        parts: list[Ids] = []
        lengths = np.zeros(len(texts) + 1, np.int64)
        for row, encoding in enumerate(self._model.encode_batch_fast(list(texts), add_special_tokens=False)):
            ids = self._spelled(np.array(encoding.ids, np.uint32))[0]
            parts += [*before, ids, *after]
            lengths[row + 1] = len(ids) + len(before) + len(after)
        ids = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
        encoded = Encoded(ids, np.cumsum(lengths), tuple(map(self.special_text.count, texts)))
        check_markers(encoded.ids, encoded.offsets, self.bos, self.eos, self._forbidden)
        return encoded

    def encode_column(self, texts: pa.Array) -> Encoded:
        """Return the ids of a column of texts, as `encode_batch` does."""
        return self.encode_batch(texts.to_pylist())

    def forbidden_places(self, ids: Ids) -> Places:
        """Return the places in `ids` of those that no text becomes."""
        first, length = self._allowed
        places = np.flatnonzero(ids - first >= length)  # below `first` wraps around
        return places[self._forbidden[ids[places]]]

    def encode(self, text: str) -> Ids:
        """Return the ids of one text, BOS and EOS included."""
        return self.encode_batch([text]).ids

    def encode_plain(self, text: str) -> Ids:
        """Return the ids of one text without BOS and EOS."""
        ids = self.encode(text)
        return ids[int(self.bos is not None) : len(ids) - int(self.eos is not None)]

    def encode_with_offsets(self, text: str) -> Spans:
        """Return the ids of `text`, as `encode` does, and the code points that each stands for."""
        encoding = self._model.encode(text, add_special_tokens=False)
        ids, repeats = self._spelled(np.array(encoding.ids, np.uint32))
        places = np.repeat(np.array(encoding.offsets, np.int64).reshape(-1, 2), repeats, axis=0)
        first, last = ([] if marker is None else [marker] for marker in (self.bos, self.eos))
        ids = np.concatenate([np.array(first, np.uint32), ids, np.array(last, np.uint32)])
        ends = [np.full((len(first), 2), 0), places, np.full((len(last), 2), len(text))]
        places = np.concatenate(ends).astype(np.int64)
        return Spans(ids, places[:, 0], places[:, 1])

    def decode(self, ids: npt.ArrayLike) -> str:
        """Return the text of `ids`; control tokens stand in it as they are written."""
        return str(self._model.decode(np.asarray(ids).tolist(), skip_special_tokens=False))

    def canary(self) -> list[int]:
        """Return the ids of `CANARY`."""
        return [int(index) for index in self.encode(CANARY)]

    def _spelled(self, ids: Ids) -> tuple[Ids, Places]:
        """Return `ids` with control tokens that the model made spelled out, and how many ids each became.

        A model may hold a control token as an ordinary piece (`<s>` in unigram vocabularies) and find it in text.
        """
        repeats = np.ones(len(ids), np.int64)
        found = np.flatnonzero(self._forbidden[ids])
        if not len(found):
            return ids, repeats
        parts: list[Ids] = []
        start = 0
        for place in found.tolist():
            letters = self._letters(self._names[int(ids[place])])
            parts += [ids[start:place], letters]
            repeats[place], start = len(letters), place + 1
        return np.concatenate([*parts, ids[start:]]), repeats

    def _letters(self, control: str) -> Ids:
        encodings = [self._model.encode(letter, add_special_tokens=False) for letter in control]
        ids = np.array([index for encoding in encodings for index in encoding.ids], np.uint32)
        if self._forbidden[ids].any():
            raise TokenizerError(f"its model gives a control token for a single letter of {control!r}: nothing is safe")
        return ids


def longest_gap(forbidden: Places, vocabulary: int) -> tuple[np.uint32, np.uint32]:
    """Return first and length of the longest run of ids below `vocabulary` without one of `forbidden`, ascending."""
    edges = np.concatenate([[-1], forbidden, [vocabulary]])
    longest = int(np.argmax(np.diff(edges)))
    return np.uint32(edges[longest] + 1), np.uint32(edges[longest + 1] - edges[longest] - 1)


def joined(ids: Ids, offsets: Places, bos: int | None, eos: int | None) -> tuple[Ids, Places]:
    """Return ids and offsets of documents with `bos` before and `eos` after each; None puts nothing."""
    first, last = int(bos is not None), int(eos is not None)
    if not first and not last:
        return ids, offsets
    places = offsets + (first + last) * np.arange(len(offsets), dtype=np.int64)
    result = np.empty(int(places[-1]), np.uint32)
    inside = np.ones(len(result), np.bool_)
    if bos is not None:
        result[places[:-1]], inside[places[:-1]] = bos, False
    if eos is not None:
        result[places[1:] - 1], inside[places[1:] - 1] = eos, False
    result[inside] = ids
    return result, places


def check_markers(
    ids: npt.NDArray[Any], offsets: Places, bos: int | None, eos: int | None, forbidden: npt.NDArray[np.bool_]
) -> None:
    """Check that each document begins with `bos`, ends with `eos`, and holds no other id of the table `forbidden`.

    Raises:
        TokenizerError: the first document that does not, by its number.
    """
    lengths = np.diff(offsets)
    markers = (bos is not None) + (eos is not None)
    wrong = lengths < markers
    if bos is not None and not wrong.any():
        wrong |= ids[offsets[:-1]] != bos
    if eos is not None and not wrong.any():
        wrong |= ids[offsets[1:] - 1] != eos
    if not wrong.any():
        counts = np.concatenate([[0], np.cumsum(forbidden[ids])])
        wrong |= counts[offsets[1:]] - counts[offsets[:-1]] != markers
    if wrong.any():
        raise TokenizerError(
            f"document {int(np.argmax(wrong))} of a batch does not begin with BOS ({bos}), end with EOS ({eos}) and "
            "hold no other control token"
        )
