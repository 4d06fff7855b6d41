"""Other tokenizer files as tokenizer.json: tiktoken's ranks and SentencePiece models.

The same file gives the same bytes. Ids of what comes out equal those of the packages `tiktoken` and `sentencepiece`,
which are not needed here. Two differences lie in the libraries: where two ways of cutting a text have one likelihood,
`sentencepiece` lets sums of 32 bits choose (unigram models; one token in some 10,000 of long texts); and where a model
has a table of normal forms, `tokenizers` looks at a letter together with the marks behind it.

- tiktoken: a token's two parts are what byte pair encoding by the ranks before its own makes of it; a token that it
  does not make of two is found only where it is a whole word (`ignore_merges`), as there.
- SentencePiece: unigram and BPE, with and without bytes for unknown characters. Its own pieces for bytes, controls and
  what is unused have no merge, or a score that no text reaches.

Cost: a second per 100,000 tokens.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, TypeVar

from transforms.token_file import TokenizerError

Token = TypeVar("Token", str, bytes)

PATTERNS: Final[Mapping[str, str]] = {
    "r50k_base": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k_base": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    "o200k_base": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
"""How encodings that OpenAI published cut texts into words: tiktoken's own, a rank file does not say."""

NEVER_CHOSEN: Final = -1e9
"""Score of pieces that no text becomes, in a unigram model."""


def from_tiktoken(ranks: bytes, pattern: str, special: Mapping[str, int]) -> bytes:
    """Return the tokenizer.json of a file of ranks: a line is a token in base64, a space, its rank, which is its id.

    Args:
        ranks: the file.
        pattern: one of `PATTERNS`, or a regular expression.
        special: text of each special token → id.

    Raises:
        TokenizerError: it is no such file, lacks a byte, or ids are used twice.
    """
    try:
        lines = [line.split(None) for line in ranks.split(b"\n") if line.strip(b" \r")]
        tokens = {base64.b64decode(token, validate=True): int(rank) for token, rank in lines}
    except ValueError as error:
        raise TokenizerError(f"no file of ranks of tiktoken: {error}") from None
    if len({*tokens.values(), *special.values()}) < len(lines) + len(special):
        raise TokenizerError("two tokens of the rank file and the special tokens have one id")
    if missing := [byte for byte in range(256) if bytes([byte]) not in tokens]:
        raise TokenizerError(f"the rank file lacks {len(missing)} of the 256 bytes, as {missing[0]}")
    letters = byte_letters()
    merges = [
        ["".join(letters[byte] for byte in part) for part in parts]
        for token in sorted(tokens, key=tokens.__getitem__)
        if len(token) > 1 and len(parts := _parts(token, tokens)) == 2
    ]
    vocab = {"".join(letters[byte] for byte in token): rank for token, rank in tokens.items()}
    words = [
        {
            "type": "Split",
            "pattern": {"Regex": PATTERNS.get(pattern, pattern)},
            "behavior": "Isolated",
            "invert": False,
        },
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    ]
    decoder = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    # The library gives special tokens that the model lacks the next free ids; here they have those of the file.
    model = _bpe({**vocab, **special}, merges, ignore_merges=True)
    return _file(_added(special, True), None, {"type": "Sequence", "pretokenizers": words}, decoder, model)


def _parts(token: Token, ranks: Mapping[Token, int]) -> list[Token]:
    """Return what byte pair encoding by the ranks below that of `token` makes of it."""
    limit = ranks[token]
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(left + right, limit) for left, right in pairwise(parts)]
        least = min(pairs)
        if least >= limit:
            break
        place = pairs.index(least)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts


def byte_letters() -> list[str]:
    """Return the letters that stand for the 256 bytes in vocabularies on bytes (GPT-2, 2019)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in shown else chr(next(hidden)) for byte in range(256)]


NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces."""

UNIGRAM, BPE = 1, 2


@dataclass(slots=True)
class SentencePieceModel:
    """What a SentencePiece model says: its pieces with score and type, and how texts are normalised."""

    pieces: list[tuple[str, float, int]] = field(default_factory=list)
    kind: int = UNIGRAM
    byte_fallback: bool = False
    suffix: bool = False
    charsmap: bytes = b""
    dummy_prefix: bool = True
    squeeze: bool = True
    escape: bool = True


def from_sentencepiece(content: bytes) -> bytes:
    """Return the tokenizer.json of a SentencePiece model.

    Raises:
        TokenizerError: it is none, or none that can be converted exactly: of words or characters, with spaces behind
            words, or with user-defined pieces and a space put before texts.
    """
    try:
        model = _read_model(content)
        unknown = [piece for piece, _, kind in model.pieces if kind == UNKNOWN]
    except (ValueError, IndexError, struct.error) as error:
        raise TokenizerError(f"no SentencePiece model ({error})") from None
    if len(unknown) != 1 or model.kind not in (UNIGRAM, BPE):
        raise TokenizerError(
            f"a SentencePiece model of kind {model.kind} with {len(unknown)} unknown pieces: not known"
        )
    defined = any(kind == USER_DEFINED for _, _, kind in model.pieces)
    if model.suffix or not model.escape or (defined and model.dummy_prefix):
        raise TokenizerError(
            "a SentencePiece model with spaces behind words, spaces kept, or user-defined pieces and a space before "
            "texts: the tokenizers library has other ids for it"
        )
    marked = {piece: place for place, (piece, _, kind) in enumerate(model.pieces) if kind in (UNKNOWN, CONTROL)}
    own = {piece: place for place, (piece, _, kind) in enumerate(model.pieces) if kind == USER_DEFINED}
    added = sorted([*_added(marked, True), *_added(own, False)], key=lambda token: token["id"])
    decoder: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    decoder += [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if model.dummy_prefix else []
    made = _unigram(model) if model.kind == UNIGRAM else _merged(model, unknown[0])
    return _file(added, _normalizer(model), None, {"type": "Sequence", "decoders": decoder}, made)


def _normalizer(model: SentencePieceModel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if model.charsmap:
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.charsmap).decode()})
    if model.squeeze:
        for pattern, content in ((r"\A +|[ ▁]+\z", ""), (" {2,}", " ")):
            steps.append({"type": "Replace", "pattern": {"Regex": pattern}, "content": content})
    if model.dummy_prefix:
        steps.append({"type": "Prepend", "prepend": "▁"})
    steps.append({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
    return {"type": "Sequence", "normalizers": steps}


def _unigram(model: SentencePieceModel) -> dict[str, Any]:
    chosen = (NORMAL, USER_DEFINED)
    vocab = [[piece, score if kind in chosen else NEVER_CHOSEN] for piece, score, kind in model.pieces]
    unknown = next(place for place, (_, _, kind) in enumerate(model.pieces) if kind == UNKNOWN)
    return {"type": "Unigram", "unk_id": unknown, "vocab": vocab, "byte_fallback": model.byte_fallback}


def _merged(model: SentencePieceModel, unknown: str) -> dict[str, Any]:
    order = sorted(
        (place for place, (_, _, kind) in enumerate(model.pieces) if kind in (NORMAL, UNUSED)),
        key=lambda place: (-model.pieces[place][1], place),
    )
    ranks = {model.pieces[place][0]: rank for rank, place in enumerate(order)}
    merges = [parts for piece in ranks if len(piece) > 1 and len(parts := _parts(piece, ranks)) == 2]
    vocab = {piece: place for place, (piece, _, _) in enumerate(model.pieces)}
    return {
        **_bpe(vocab, merges, ignore_merges=False),
        "unk_token": unknown,
        "fuse_unk": True,
        "byte_fallback": model.byte_fallback,
    }


def _read_model(content: bytes) -> SentencePieceModel:
    """Read the fields that matter of a ModelProto (sentencepiece_model.proto)."""
    model = SentencePieceModel()
    for number, value in _fields(content):
        if number == 1:
            piece = dict(_fields(value))
            score = struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0
            model.pieces.append((piece[1].decode(), score, int(piece.get(3, NORMAL))))
        elif number == 2:
            trainer = dict(_fields(value))
            model.kind, model.byte_fallback = int(trainer.get(3, UNIGRAM)), bool(trainer.get(35, False))
            model.suffix = bool(trainer.get(24, False))
        elif number == 3:
            normalizer = dict(_fields(value))
            model.charsmap = bytes(normalizer.get(2, b""))
            model.dummy_prefix, model.squeeze = bool(normalizer.get(3, True)), bool(normalizer.get(4, True))
            model.escape = bool(normalizer.get(5, True))
    return model


def _fields(content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protocol buffers message: bytes, or an integer.

    Raises:
        ValueError: it is cut short, or has a type of field that is none.
    """
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, place = _varint(content, place)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            size, place = _varint(content, place)
        if size is None or place + size > len(content):
            raise ValueError(f"a field of type {kind} at byte {place}")
        yield number, content[place : place + size]
        place += size


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise ValueError(f"a number that does not end at byte {place}")


def _added(tokens: Mapping[str, int], special: bool) -> list[dict[str, Any]]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return [{"id": index, "content": text, **plain} for text, index in sorted(tokens.items(), key=lambda item: item[1])]


def _bpe(vocab: Mapping[str, int], merges: Sequence[Sequence[str]], *, ignore_merges: bool) -> dict[str, Any]:
    return {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "ignore_merges": ignore_merges,
        "vocab": dict(sorted(vocab.items(), key=lambda item: item[1])), "merges": list(merges),
    }  # fmt: skip


def _file(added: Sequence[Any], normalizer: Any, words: Any, decoder: Any, model: Any) -> bytes:
    value = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
        "pre_tokenizer": words, "post_processor": None, "decoder": decoder, "model": model,
    }  # fmt: skip
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"
