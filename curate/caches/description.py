"""`cache.json`: what a cache is, written last; its presence says that the cache is finished.

Canonical JSON with its own digest as the field "digest". It lists every other file with size and digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from curate.accounting.statistics import Statistics
from curate.caches.errors import CutShortError, DamagedCacheError, OldFormatError
from curate.caches.layout import FORMAT, ArraySpec, array_spec
from curate.digests import digest_bytes, digest_json
from curate.formats import FormatError
from curate.store import Store, StoreError, check_self_digest, json_line, self_digested

NAME: Final = "cache.json"

SAME: Final = (
    "name", "key", "dataset", "dtype", "tokens", "documents", "content", "blocks", "arrays", "files", "statistics",
)  # fmt: skip
"""Fields of `Description` that stand in `cache.json` under their own name."""

GENERATION: Final = 1 << 32
"""The first number of an origin is the shard's ordinal + so much for each generation before the document's own."""

_AGAIN: Final = "Copy the cache again, or remove its folder and run the recipe again"


@dataclass(frozen=True, slots=True)
class Description:
    """What `cache.json` says.

    Attributes:
        name: of the cell.
        key: 64 hex digits, known before it was built.
        dataset: name, key and content of the dataset that its documents come from.
        tokenizer: digest of the tokenizer.json.
        bos_text, eos_text: the policy; None for no marker.
        bos, eos: their ids.
        forbidden: ids that stand nowhere but as BOS and EOS.
        vocabulary: highest id + 1.
        library: version of the tokenizers library.
        canary_text, canary: a text and its ids.
        dtype: of `tokens`: "uint16" or "uint32".
        tokens, documents: how many.
        content: content digest.
        blocks: lengths of the blocks that the content digest is made of, by array.
        arrays: name → shard and inner chunk lengths, and the codec where it is not zstd.
        files: path → size and digest.
        statistics: of the documents, as in receipts.
        generations: of a cache that was extended: dataset, content, tokens and documents of each; else empty.
    """

    name: str
    key: str
    dataset: Mapping[str, str]
    tokenizer: str
    bos_text: str | None
    eos_text: str | None
    bos: int | None
    eos: int | None
    forbidden: Sequence[int]
    vocabulary: int
    library: str
    canary_text: str
    canary: Sequence[int]
    dtype: str
    tokens: int
    documents: int
    content: str
    blocks: Mapping[str, int]
    arrays: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, Mapping[str, Any]]
    statistics: Statistics
    generations: Sequence[Mapping[str, Any]] = ()

    def array(self, name: str) -> ArraySpec:
        """Return the array `name`."""
        lengths = self.arrays[name]
        return array_spec(
            name, self.dtype, self.tokens, self.documents, lengths["shard"], lengths["inner"],
            lengths.get("codec", "zstd"),
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Return the content of `cache.json`."""
        return json_line(self_digested(self._to_json()))

    def _to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT.stamp,
            "kind": "cache",
            "tokenizer": {
                "digest": self.tokenizer,
                "bos": self.bos_text,
                "eos": self.eos_text,
                "bos_id": self.bos,
                "eos_id": self.eos,
                "forbidden": list(self.forbidden),
                "vocabulary": self.vocabulary,
                "library": self.library,
            },
            "canary": {"text": self.canary_text, "ids": list(self.canary)},
            **{name: _plain(getattr(self, name)) for name in SAME},
            **({"generations": [_plain(generation) for generation in self.generations]} if self.generations else {}),
        }


def _plain(value: Any) -> Any:
    return {name: _plain(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def content_of(dtype: str, tokens: int, documents: int, blocks: Mapping[str, Sequence[str]]) -> str:
    """Return the content digest of a cache, given the digests of the blocks of `tokens` and `offsets`."""
    return digest_json(
        {"dtype": dtype, "tokens": tokens, "documents": documents, "blocks": {k: list(v) for k, v in blocks.items()}}
    )


def read_description(folder: Store, content: str | None = None) -> Description:
    """Return what the `cache.json` of the cache at `folder` says; `content` is the content digest that it must have.

    Raises:
        CutShortError: there is none.
        OldFormatError: it has another version of the format.
        DamagedCacheError: it is not what was written, or has another content digest than `content`.
    """
    path = folder.url(NAME)
    try:
        stored = folder.read_bytes(NAME)
        value = json.loads(stored)
    except FileNotFoundError:
        raise CutShortError(
            f"{folder.url('')} has no {NAME}: it is no cache, or its build did not finish. Run the recipe again"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(value, dict) or value.get("kind") != "cache":
        raise _damaged(path, "it does not describe a cache")
    try:
        lifted = FORMAT.lift(value, path)
    except FormatError as error:
        raise OldFormatError(str(error)) from None
    try:
        check_self_digest(value, path)
    except StoreError as error:
        raise _damaged(path, str(error)) from None
    if json_line(value) != stored:
        raise _damaged(path, "it is not the canonical JSON that curate writes")
    if content is not None and value["content"] != content:
        raise DamagedCacheError(
            f"{path} has the content digest {value['content']}, asked for was {content}: it is another cache; look at "
            "its dataset and tokenizer"
        )
    return _from_json(lifted)


def _from_json(value: Mapping[str, Any]) -> Description:
    tokenizer, canary = value["tokenizer"], value["canary"]
    return Description(
        **{name: value[name] for name in SAME},
        tokenizer=tokenizer["digest"],
        bos_text=tokenizer["bos"],
        eos_text=tokenizer["eos"],
        bos=tokenizer["bos_id"],
        eos=tokenizer["eos_id"],
        forbidden=tokenizer["forbidden"],
        vocabulary=tokenizer["vocabulary"],
        library=tokenizer["library"],
        canary_text=canary["text"],
        canary=canary["ids"],
        generations=value.get("generations", ()),
    )


def check_files(folder: Store, description: Description) -> None:
    """Check name and size of every file, and the bytes of the metadata.

    Raises:
        CutShortError: a file is missing or has another size.
        DamagedCacheError: metadata of an array are not what was written.
    """
    sizes = {entry.name: entry.size for entry in folder.entries()}
    for name, entry in description.files.items():
        path = folder.url(name)
        size = sizes.get(name)
        if size is None:
            raise CutShortError(f"{path} is missing: the cache is cut short. {_AGAIN}")
        if size != entry["bytes"]:
            raise CutShortError(
                f"{path} has {size:,} bytes, written were {entry['bytes']:,}: the cache is cut short. {_AGAIN}"
            )
        if name.endswith("zarr.json") and digest_bytes(folder.read_bytes(name)) != entry["digest"]:
            raise _damaged(path, "it is not what was written")


def _damaged(path: str, why: str) -> DamagedCacheError:
    return DamagedCacheError(f"{path} is damaged ({why}). {_AGAIN}")
