"""How many bytes of text each token of a vocabulary stands for: what bits per byte divide by.

Control tokens stand for none. In a byte-level vocabulary (GPT-2's letters) a piece has a byte per letter; in one with
byte fallback (SentencePiece) "<0xE4>" is a byte and "▁" a space; any other piece is the UTF-8 that it shows.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.token_file import TokenizerFile

_BYTE: Final = re.compile(r"<0x[0-9A-Fa-f]{2}>")


def token_bytes(file: TokenizerFile) -> npt.NDArray[np.int32]:
    """Return the bytes of each token id of `file`, 0 for control tokens and for ids that no token has."""
    value = json.loads(file.content)
    letters = _is_byte_level(value.get("decoder")) or _is_byte_level(value.get("pre_tokenizer"))
    vocab = value["model"]["vocab"]
    pairs = vocab.items() if isinstance(vocab, dict) else ((piece, index) for index, (piece, _) in enumerate(vocab))
    sizes = np.zeros(file.vocabulary, np.int32)
    for piece, index in pairs:
        sizes[int(index)] = len(piece) if letters else _shown(piece)
    for token in value["added_tokens"] or ():
        sizes[int(token["id"])] = len(token["content"].encode())
    sizes[list(file.controls.values())] = 0
    return sizes


def _shown(piece: str) -> int:
    return 1 if _BYTE.fullmatch(piece) else len(piece.replace("▁", " ").encode())


def _is_byte_level(part: Any) -> bool:
    if not isinstance(part, dict):
        return False
    inner = [*(part.get("decoders") or ()), *(part.get("pretokenizers") or ())]
    return part.get("type") == "ByteLevel" or any(map(_is_byte_level, inner))
