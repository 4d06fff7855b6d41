"""Caches of other tools as token caches: Levanter's (zarr), datatrove's (.ds with .ds.index).

Their documents keep their tokens. Each is decoded, and the digest of its text puts it into the order of the format, so
that a mixture finds texts that it shares with others; its id is a digest of the import's name and its number there. The
tokenizer must be the one that they were made with: all ids are below its vocabulary, each document begins with BOS and
ends with EOS as the tokenizer says, and those that the digest chooses (`is_sampled`) encode to the same tokens again.

Cost: decoding, some MB/s per core. Memory: 56 bytes per document, and one zarr shard.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from curate.caches.cache import TokenCache
from curate.caches.description import Description
from curate.caches.errors import CacheError, OtherTokenizerError
from curate.caches.standalone import Counts, Documents, write_cache
from curate.configuration import ConfigurationError
from curate.digests import digest_json, text_digest
from curate.store import Store
from transforms.fast_tokens import is_sampled
from transforms.token_file import TokenizerError
from transforms.tokens import CANARY, Encoder, Tokenizer, check_markers, library_version

BATCH: Final = 256
"""Documents decoded at a time."""

COMPARED: Final = 16
"""So many documents are encoded again at least: the first ones."""

MOST_DIFFERING: Final = 10
"""One document of so many may encode otherwise: tools that truncate, or cut texts before they encode."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Documents of another tool: their `ends` in an array of tokens.

    Attributes:
        where: names it in errors.
        ends: where each document ends, in tokens.
        tokens: something that gives `[start:stop]` as integers.
    """

    where: str
    ends: Counts
    tokens: Any

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Return tokens `start` to `stop`."""
        found = self.tokens[start:stop]
        return np.asarray(found.read().result() if hasattr(found, "read") else found)

    def masks(self, documents: Counts) -> None:
        """Return None: all tokens are targets."""

    def gather(self, documents: Counts) -> npt.NDArray[Any]:
        """Return the tokens of `documents` one after the other."""
        starts = np.concatenate([[0], self.ends])
        return np.concatenate(
            [self.read(int(starts[number]), int(starts[number + 1])) for number in documents.tolist()]
        )


def import_cache(source: Path | str, folder: Path | str | Store, tokenizer: Tokenizer, name: str) -> TokenCache:
    """Write what lies at `source` as the token cache `name` into `folder`, and open it.

    Args:
        source: a .ds file of datatrove, or the folder of a Levanter cache (with its `shard_ledger.json`).
        folder: an empty folder, a URL or a store.
        tokenizer: what the documents were made with, with the BOS and EOS that they have.
        name: of the cell.

    Raises:
        ConfigurationError: `source` is neither.
        OtherTokenizerError: the tokenizer is not the one that it was made with.
        CacheError: `source` is not finished or cut short, or `folder` is not empty.
    """
    foreign = open_foreign(Path(source))
    if not len(foreign.ends):
        raise CacheError(f"{foreign.where} has no documents")
    place = folder if isinstance(folder, Store) else Store(folder)
    encoder = tokenizer.encoder()
    documents = _documents(foreign, encoder, name)
    return write_cache(place, _description(foreign, tokenizer, encoder, name), documents, [foreign])


def open_foreign(source: Path) -> Foreign:
    """Return the documents at `source`.

    Raises:
        ConfigurationError: it is nothing that can be imported.
        CacheError: it is not finished, or cut short.
    """
    if source.suffix == ".ds" and source.is_file():
        return _open_datatrove(source)
    for folder in (source, source / "train"):
        if (folder / "shard_ledger.json").is_file():
            return _open_levanter(folder)
    raise ConfigurationError(f"{source} is no .ds file and no folder with a shard_ledger.json: nothing to import")


def _open_datatrove(path: Path) -> Foreign:
    index, metadata = path.with_name(f"{path.name}.index"), path.with_name(f"{path.name}.metadata")
    if not index.is_file():
        raise CacheError(f"{index} is missing: without it nobody knows where documents end")
    ends = np.fromfile(index, "<u8").astype(np.int64)
    size, tokens = path.stat().st_size, int(ends[-1]) if len(ends) else 0
    width = size // tokens if tokens else 2
    if metadata.is_file():
        width = int(metadata.read_text().partition("\n")[0].rpartition("|")[2])
    if size != tokens * width or width not in (2, 4) or (np.diff(ends) < 0).any():
        raise CacheError(f"{path} has {size:,} bytes, its index says {tokens:,} tokens: it is cut short")
    values: Any = np.memmap(path, f"<u{width}", "r") if tokens else np.zeros(0, "<u2")
    return Foreign(str(path), ends, values)


def _open_levanter(folder: Path) -> Foreign:
    ledger = json.loads((folder / "shard_ledger.json").read_text())
    if not ledger.get("is_finished"):
        raise CacheError(f"{folder} is not finished: its ledger says so")
    data, offsets = (_zarr(folder / "input_ids" / name) for name in ("data", "offsets"))
    rows = int(offsets[0].read().result())
    if rows != ledger["total_num_rows"]:
        raise CacheError(f"{folder} has {rows:,} documents, its ledger says {ledger['total_num_rows']:,}")
    ends = np.asarray(offsets[1 : rows + 1].read().result(), np.int64)
    if rows and (int(ends[-1]) > data.shape[0] or (np.diff(ends) < 0).any()):
        raise CacheError(f"{folder}: its offsets reach beyond its tokens: it is cut short")
    return Foreign(str(folder), ends, data)


def _zarr(folder: Path) -> Any:
    import tensorstore

    driver = "zarr3" if (folder / "zarr.json").is_file() else "zarr"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{folder}/"}}
    try:
        return tensorstore.open(spec, open=True, read=True).result()
    except ValueError as error:
        raise CacheError(f"{folder} cannot be read: {str(error)[:300]}") from None


def _documents(foreign: Foreign, encoder: Encoder, name: str) -> Documents:
    count = len(foreign.ends)
    texts, ids = np.zeros((count, 16), np.uint8), np.zeros((count, 16), np.uint8)
    compared = differing = 0
    for first, tokens, edges in _batches(foreign, encoder):
        for row in range(len(edges) - 1):
            document = tokens[edges[row] : edges[row + 1]]
            text = encoder.decode(document[encoder.bos is not None : len(document) - (encoder.eos is not None)])
            texts[first + row] = np.frombuffer(text_digest(text), np.uint8)
            ids[first + row] = np.frombuffer(blake3(json.dumps([name, first + row]).encode()).digest(16), np.uint8)
            if first + row < COMPARED or is_sampled(texts[first + row : first + row + 1])[0]:
                compared, differing = compared + 1, differing + (not np.array_equal(encoder.encode(text), document))
    if differing * MOST_DIFFERING > compared:
        raise OtherTokenizerError(
            f"{foreign.where}: {differing} of {compared} compared documents encode to other tokens: it was made with "
            "another tokenizer, or otherwise"
        )
    numbers = np.arange(count, dtype=np.int64)
    origin = np.stack([np.zeros(count, np.uint64), numbers.astype(np.uint64)], axis=1)
    return Documents(np.zeros(count, np.int64), numbers, np.diff(foreign.ends, prepend=0), ids, texts, origin)


def _batches(foreign: Foreign, encoder: Encoder) -> Iterator[tuple[int, npt.NDArray[Any], Counts]]:
    """Yield first document, tokens and offsets of batches of documents, checked against the tokenizer."""
    starts = np.concatenate([[0], foreign.ends])
    forbidden = np.zeros(encoder.vocabulary, np.bool_)
    forbidden[list(encoder.forbidden)] = True
    for first in range(0, len(foreign.ends), BATCH):
        edges = starts[first : first + BATCH + 1]
        tokens = foreign.read(int(edges[0]), int(edges[-1]))
        try:
            if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < encoder.vocabulary:
                raise TokenizerError(f"ids up to {int(tokens.max())}, the vocabulary has {encoder.vocabulary:,}")
            check_markers(tokens, edges - edges[0], encoder.bos, encoder.eos, forbidden)
        except TokenizerError as error:
            where = f"{foreign.where}, documents {first:,} and after"
            raise OtherTokenizerError(f"{where}: {error}: it was made with another tokenizer, or other ends") from None
        yield first, tokens, edges - edges[0]


def _description(foreign: Foreign, tokenizer: Tokenizer, encoder: Encoder, name: str) -> Description:
    content = blake3(foreign.ends.astype("<i8").tobytes()).hexdigest()
    dataset = {
        "name": Path(foreign.where).name,
        "key": digest_json({"operation": "import", "ends": content}),
        "content": "",
    }
    key = digest_json({"operation": "import", "name": name, "tokenizer": tokenizer.digest, "ends": content})
    return Description(
        name=name, key=key, dataset=dataset, tokenizer=tokenizer.digest, bos_text=tokenizer.bos, eos_text=tokenizer.eos,
        bos=encoder.bos, eos=encoder.eos, forbidden=encoder.forbidden, vocabulary=encoder.vocabulary,
        library=library_version(), canary_text=CANARY, canary=encoder.canary(), dtype=encoder.dtype.name, tokens=0,
        documents=0, content="", blocks={}, arrays={}, files={}, statistics={},
    )  # fmt: skip
