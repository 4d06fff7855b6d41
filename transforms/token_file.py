"""Reading a tokenizer.json for tokenizing documents: which of its tokens are control tokens, and what it is loaded as.

A control token structures a stream (end of text, turns of a chat, padding): no document's text may become one. These
are the added tokens that the file calls special, those of the shape `<|…|>` or `<｜…｜>` whatever it calls them (public
files leave turns of a chat unmarked), and the BOS and EOS that were asked for. Other added tokens, as runs of spaces,
are ordinary vocabulary.

Truncation, padding and the post-processor of a file are left out: a cache holds whole documents, BOS and EOS are set
by an explicit policy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

SHAPES: Final = (("<|", "|>"), ("<｜", "｜>"))
"""Beginning and end of added tokens that are control tokens although the file does not call them special."""


class TokenizerError(ValueError):
    """A tokenizer.json that cannot be used, or ids that break the contract of `transforms.tokens`."""


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """What a tokenizer.json says.

    Attributes:
        content: the JSON that the library is given.
        vocabulary: highest id + 1.
        controls: text of each control token → id.
        unknown: id of what the model cannot encode, or None.
        added: texts of all added tokens, in the file's order.
    """

    content: str
    vocabulary: int
    controls: Mapping[str, int]
    unknown: int | None
    added: tuple[str, ...] = ()


def read_tokenizer(content: bytes, markers: Iterable[str]) -> TokenizerFile:
    """Return what the tokenizer.json `content` says; `markers` are the BOS and EOS that are asked for.

    Raises:
        TokenizerError: it is no tokenizer.json, it draws at random (dropout), or a marker is no added token of it.
    """
    try:
        value = json.loads(content)
        added = [token for token in value["added_tokens"] or () if token["content"]]
        model = value["model"]
        ids = _vocabulary(model["vocab"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TokenizerError(f"no tokenizer.json of the tokenizers library ({type(error).__name__}: {error})") from None
    if model.get("dropout"):
        raise TokenizerError("its model has a dropout: ids would be drawn at random. Set dropout to null")
    known = {token["content"]: int(token["id"]) for token in added}
    wanted = tuple(markers)
    for marker in wanted:
        if marker not in known:
            raise TokenizerError(f"it has no added token {marker!r} to mark documents with; it has {_some(known)}")
    controls = {}
    for token in added:
        text = token["content"]
        token["special"] = bool(token["special"]) or text in wanted or is_control_shape(text)
        if token["special"]:
            controls[text] = known[text]
    value.update(truncation=None, padding=None, post_processor=None)
    vocabulary = 1 + max([*ids.values(), *known.values()], default=-1)
    return TokenizerFile(json.dumps(value), vocabulary, controls, _unknown(model, ids), tuple(known))


def is_control_shape(text: str) -> bool:
    """Return whether an added token with this text is a control token whatever its file calls it."""
    return any(len(text) > 4 and text.startswith(begin) and text.endswith(end) for begin, end in SHAPES)


def _vocabulary(vocab: Any) -> dict[str, int]:
    if isinstance(vocab, list):  # a unigram model lists (piece, score)
        return {piece: index for index, (piece, _) in enumerate(vocab)}
    return {str(piece): int(index) for piece, index in vocab.items()}


def _unknown(model: Mapping[str, Any], ids: Mapping[str, int]) -> int | None:
    if isinstance(model.get("unk_id"), int):
        return int(model["unk_id"])
    name = model.get("unk_token")
    return None if name is None else ids.get(str(name))


def _some(known: Mapping[str, int]) -> str:
    names = sorted(known)
    return ", ".join(repr(name) for name in names[:8]) + (", …" if len(names) > 8 else "") if names else "none"


@dataclass(frozen=True, slots=True)
class SpecialText:
    """Counts stretches of text that look like a control token. Cost: a search per distinct beginning of two letters."""

    controls: tuple[str, ...]
    beginnings: tuple[str, ...] = field(init=False)
    pattern: re.Pattern[str] | None = field(init=False)

    def __post_init__(self) -> None:
        ordered = sorted(self.controls, key=lambda text: (-len(text), text))  # the longest first, as the library does
        object.__setattr__(self, "beginnings", tuple(sorted({text[:2] for text in ordered})))
        object.__setattr__(self, "pattern", re.compile("|".join(map(re.escape, ordered))) if ordered else None)

    def count(self, text: str) -> dict[str, int]:
        """Return how often each control token stands in `text`; empty for nearly all texts."""
        counts: dict[str, int] = {}
        if self.pattern is not None and any(beginning in text for beginning in self.beginnings):
            for found in self.pattern.findall(text):
                counts[found] = counts.get(found, 0) + 1
        return counts
