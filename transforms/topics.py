"""Topics of documents: a file of centres that `fit_topics` makes, and the transform that assigns the nearest one.

A file of topics is one line of canonical JSON (format, names and terms of the topics, what the embedder was, how much
of a text is looked at), then the centres as little-endian int16, row after row, then, of the default embedder, the
rarity of its 2^18 buckets as little-endian uint16. It is published and pinned; nothing in it has to be fitted again.

Invariants: topic and margin of a document depend on the first `characters` code points of its text and on the file;
with the default embedder all is integers and the same on any machine.
Cost: 60 to 100 MB/s on one core with the default embedder; a file takes 0.5 MB and 1 kB per topic.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.canonical import canonical_json
from transforms.embedding import BUCKETS, Embedder, HashedTfidf, Rarity, directions
from transforms.fitted import FittedFile, LocalFile, file_of
from transforms.models import Model
from transforms.outcome import Outcome, kept, require
from transforms.schema import BASE, EXTRA, set_columns, with_columns
from transforms.spherical_kmeans import ONE, Nearest, Numbers, Rows, nearest, unit_rows

FORMAT: Final = {"name": "curate topics", "version": 1}
MARGIN: Final = pa.decimal128(5, 4)
UNIT: Final = 10_000
"""Margins are told in ten-thousandths."""


class TopicsError(ValueError):
    """A file of topics is another, or of another embedder, than asked for; or no topics can be fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class Topics:
    """Topics as they were fitted.

    Attributes:
        names: of the topics, all different.
        terms: of each topic the words that tell it from the others, the most telling first.
        centres: of each topic, as `transforms.spherical_kmeans` has them.
        embedder: what turns texts into vectors, the default one with the rarity of words.
        characters: code points from the beginning of a text that are looked at.
    """

    names: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]
    centres: Rows
    embedder: Embedder
    characters: int

    def to_bytes(self) -> bytes:
        """Return the file of these topics."""
        rarity = self.embedder.rarity if isinstance(self.embedder, HashedTfidf) else None
        header = {
            "format": FORMAT,
            "topics": [{"name": n, "terms": list(t)} for n, t in zip(self.names, self.terms, strict=True)],
            "embedder": identity(self.embedder),
            "rarity": rarity.documents if rarity else None,
            "characters": self.characters,
        }
        weights = rarity.weights if rarity else b""
        return canonical_json(header).encode() + b"\n" + self.centres.astype("<i2").tobytes() + weights

    @classmethod
    def from_bytes(cls, content: bytes, embedder: Embedder | None = None) -> Topics:
        """Return the topics in a file; `embedder` is the one that they were fitted with, None for the default one.

        Raises:
            TopicsError: it is no file of topics, of another format, cut short, or was fitted with another embedder.
        """
        line, _, rest = content.partition(b"\n")
        header = _header(line)
        found = embedder or HashedTfidf(_dimension(header))
        if identity(found) != header["embedder"]:
            raise TopicsError(
                f"these topics were fitted with {header['embedder']}, not with {identity(found)}: give AssignTopic "
                "the embedder that fit_topics had, as AssignTopic(…, embedder=…)"
            )
        size = 2 * len(header["topics"]) * found.dimension
        if len(rest) != size + (0 if header["rarity"] is None else 2 * BUCKETS):
            raise TopicsError(f"a file of topics was cut: {len(rest):,} bytes follow its header")
        if isinstance(found, HashedTfidf) and header["rarity"] is not None:
            found = found.fitted(Rarity(rest[size:], header["rarity"]))
        centres = np.frombuffer(rest[:size], "<i2").astype(np.int16).reshape(-1, found.dimension)
        names = tuple(topic["name"] for topic in header["topics"])
        terms = tuple(tuple(topic["terms"]) for topic in header["topics"])
        return cls(names, terms, centres, found, header["characters"])

    def rows(self, texts: pa.LargeStringArray) -> Rows:
        """Return the directions of the first code points of `texts`; zeros for a text without any."""
        return unit_rows(directions(self.embedder, beginnings(texts, self.characters)))

    def assign(self, texts: pa.LargeStringArray) -> tuple[Nearest, npt.NDArray[np.bool_]]:
        """Return the nearest topic of each text, and which texts have none because they have no direction."""
        rows = self.rows(texts)
        return nearest(rows, self.centres), np.logical_not(rows.any(axis=1))


def identity(embedder: Embedder) -> dict[str, Any]:
    """Return what a file of topics says of its embedder: class, version, dimension."""
    return {"class": type(embedder).__name__, "version": embedder.version, "dimension": embedder.dimension}


def beginnings(texts: pa.LargeStringArray, characters: int) -> pa.LargeStringArray:
    """Return the first code points of each text; a null is the empty text."""
    lengths = pc.max(pc.binary_length(texts)).as_py() or 0  # bytes: as many as code points, or more
    return texts if lengths <= characters else cast(pa.LargeStringArray, pc.utf8_slice_codeunits(texts, 0, characters))


def _header(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or not {"format", "topics"} <= header.keys():
        raise TopicsError("this is no file of topics: give the one that fit_topics made, topics.model")
    if header["format"] != FORMAT:
        raise TopicsError(f"topics of the format {header['format']}, this curate reads {FORMAT}: fit them again")
    return header


def _dimension(header: dict[str, Any]) -> int:
    """Return the dimension of a default embedder; of any other it does not matter."""
    return int(header["embedder"]["dimension"]) if header["embedder"]["class"] == "HashedTfidf" else 64


@lru_cache(maxsize=8)
def _loaded(file: Hashable, embedder: Hashable) -> Topics:
    """Return the topics of a `FittedFile`, which its digest tells from others."""
    return Topics.from_bytes(cast(FittedFile, file).read(), cast("Embedder | None", embedder))


@dataclass(frozen=True, slots=True)
class AssignTopic:
    """Writes the name of the nearest topic to `topic`, and how much nearer it is than the next one to `topic_margin`.

    The margin is the difference of two cosines, 0.0000 to 2.0000; a small one says that the document lies between two
    topics. Both are null for a text without words. Nothing is dropped.

    Args:
        topics: what `fit_topics` gives; or a `topics.model` that it made before, as a path, or with the digest that it
            must have as a `LocalFile`.
        embedder: of the topics; None for the default one, or for that of `fit_topics`.
        column: name of the column; that of the margin has "_margin" behind it. Topics of two sizes can stand side by
            side, as `AssignTopic(fine, column="subtopic")`.
    """

    topics: Model | LocalFile
    embedder: Embedder | None = None
    column: str = "topic"

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.column in (*BASE.names, EXTRA.name):
            raise ValueError(f"AssignTopic(column={self.column!r}): that is a column of every document, name another")
        given = getattr(getattr(self.topics, "fit", None), "embedder", None)  # of a stage of the recipe
        if self.embedder is None and given is not None and not isinstance(given, HashedTfidf):
            object.__setattr__(self, "embedder", given)

    @property
    def isolated(self) -> bool:
        """Whether it runs in a child process: as its embedder wishes."""
        return bool(getattr(self.embedder, "isolated", False))

    @property
    def fields(self) -> tuple[pa.Field, pa.Field]:
        """The two columns."""
        return pa.field(self.column, pa.large_string()), pa.field(f"{self.column}_margin", MARGIN)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the two columns; `text` is needed."""
        require(schema, "AssignTopic", text=pa.large_string())
        return with_columns(schema, *self.fields)

    def ready(self) -> None:
        """Ask the embedder whether it can work, and read the file of topics.

        Raises:
            RuntimeError: not, or it is not there; the message has the remedy.
        """
        if (ready := getattr(self.embedder, "ready", None)) is not None:
            ready()
        try:
            self._read()
        except TopicsError as error:
            raise RuntimeError(str(error)) from error

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Assign topics to the texts of `batch`.

        Raises:
            FittedError: the file is not there, or another than was said.
            TopicsError: the file is none of topics, or was fitted with another embedder.
        """
        self.output_schema(batch.schema)
        topics = self._read()
        found, none = topics.assign(cast(pa.LargeStringArray, batch.column("text")))
        labels = pa.array(found.labels, pa.int64(), mask=none)
        topic, margin = self.fields
        values = {topic: pa.array(topics.names, topic.type).take(labels), margin: _decimals(found.margins, none)}
        return kept(set_columns(batch, values))

    def _read(self) -> Topics:
        return _loaded(cast(Hashable, file_of(self.topics, "AssignTopic")), cast(Hashable, self.embedder))


def _decimals(margins: Numbers, none: npt.NDArray[np.bool_]) -> pa.Array:
    """Return `margins`, in units of `ONE`², as decimals, rounded down; null where there is none."""
    whole = margins * UNIT // (ONE * ONE)
    halves = np.zeros((len(whole), 2), "<i8")
    halves[:, 0] = whole  # none is negative
    decimals = pa.Array.from_buffers(MARGIN, len(whole), [None, pa.py_buffer(halves)])
    return pc.if_else(pa.array(none), pa.scalar(None, MARGIN), decimals)
