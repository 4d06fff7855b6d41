"""Tokens in a recipe: `train_tokenizer`, and `tokenize`, which gives the cells of a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from curate.caches.layout import LAYOUT, MAPPED, Layout
from curate.caches.plan import ALL
from curate.configuration import KEYED_IF_GIVEN, ConfigurationError
from curate.recipes.graph import Dataset
from transforms.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class TrainedTokenizer:
    """A byte-level BPE that a stage trains on a dataset; see `train_tokenizer`."""

    inputs: tuple[Dataset, ...]
    vocab_size: int
    special: tuple[str, ...]
    bos: str | None
    eos: str | None
    name: str

    version = 2


@dataclass(frozen=True, slots=True)
class Cells:
    """Token caches of a dataset, one per combination of values; see `tokenize`.

    `inputs` is the dataset, and the trained tokenizer where `tokenizer` is None.
    """

    inputs: tuple[Dataset | TrainedTokenizer, ...]
    tokenizer: Tokenizer | None
    by: tuple[str, ...]
    name: str
    fast: str = field(default="fall back", metadata={"key": False})
    stored: str = field(default="compressed", metadata=KEYED_IF_GIVEN)

    version = 1

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources of the texts."""
        return tuple(source for given in self.inputs if isinstance(given, Dataset) for source in given.sources)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names that cells can have; None where they follow from the texts."""
        return {(): (ALL,), ("source",): self.sources}.get(self.by)

    @property
    def layout(self) -> Layout:
        """How the arrays are cut and stored."""
        return MAPPED if self.stored == "mapped" else LAYOUT


def train_tokenizer(
    dataset: Dataset,
    vocab_size: int,
    *,
    special: Sequence[str] = ("<|endoftext|>",),
    bos: str | None = None,
    eos: str | None = "<|endoftext|>",
    name: str = "train tokenizer",
) -> TrainedTokenizer:
    """Return a tokenizer trained on all texts of `dataset`: byte-level BPE, the same for any order of the texts.

    Args:
        dataset: what it is trained on.
        vocab_size: ids, special tokens and the 256 bytes included.
        special: special tokens; they have the first ids.
        bos: token that each document begins with, None for none.
        eos: token that each document ends with, None for none.
        name: of the stage.

    Raises:
        ConfigurationError: BOS or EOS is no special token.
    """
    for what, token in (("bos", bos), ("eos", eos)):
        if token is not None and token not in special:
            raise ConfigurationError(f"{what}={token!r} is not one of the special tokens {list(special)}")
    return TrainedTokenizer((dataset,), vocab_size, tuple(special), bos, eos, name)


def tokenize(
    dataset: Dataset,
    tokenizer: Tokenizer | TrainedTokenizer,
    by: str | Sequence[str] | None = None,
    *,
    fast: Literal["fall back", "stop", "never"] = "fall back",
    stored: Literal["compressed", "mapped"] = "compressed",
    name: str = "tokenize",
) -> Cells:
    """Return the token caches of `dataset`: one, or one per value of a column, or per combination of several.

    Args:
        dataset: whose texts are tokenized.
        tokenizer: a `Tokenizer` file, or what `train_tokenizer` gives.
        by: columns: `by="source"` makes cells named by their value ("web"), several columns cells like
            "topic=3/level=4"; None makes one cell, "all".
        fast: what to do about gigatoken (extra `fast`), which is compared with the tokenizers library before and while
            it encodes: "fall back" uses it where it is installed and agrees, "stop" ends the run where it is missing
            or differs, "never" does without. The caches are the same; their manifest says what was used.
        stored: "compressed" by zstd; or "mapped": tokens as they are, a quarter larger, which a reader on the same
            machine maps into memory. Content digests are the same.
        name: of the stage.

    Raises:
        ConfigurationError: `stored` is neither.
    """
    if stored not in ("compressed", "mapped"):
        raise ConfigurationError(f"stored={stored!r}: 'compressed' or 'mapped'")
    columns = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if isinstance(tokenizer, TrainedTokenizer):
        return Cells((dataset, tokenizer), None, columns, name, fast, stored)
    return Cells((dataset,), tokenizer, columns, name, fast, stored)
