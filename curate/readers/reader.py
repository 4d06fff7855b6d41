"""Readers: where documents come from, and how their rows are named.

A `Reader` is configuration; `read_warc`, `read_jsonl` and the others make one. Its schema is
declared, never guessed from the first row: what nobody declared survives as canonical JSON in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from curate.configuration import KEYED_IF_GIVEN, ConfigurationError
from curate.readers.forms import Form, TarForm, WatForm
from curate.store import Store, StoreError
from transforms.schema import BASE, CRAWLED_AT, DECODE_CONFIDENCE, ENCODING, documents, records, with_columns

UNIT_BYTES: Final = 256 << 20
"""Default size of a file from which on it is read in several units."""

MAX_RECORD_BYTES: Final = 64 << 20
"""Default bound of a record: of its line, its file, the block of an archive and what it decodes to, or the strings and
binary values of its row."""

PACKED: Final = ("mediawiki", "epub", "pdf")
FORMATS: Final = ("warc", "wet", "wat", "jsonl", "parquet", "csv", "files", "text", "code", "html", "tar", *PACKED)
RAW: Final = frozenset({"warc", "html", *PACKED})
"""Formats of records whose bytes are not yet text: a transform makes text of them."""

NAMED: Final = frozenset({"warc", "wet", "wat"})
"""Formats whose records name themselves."""

FURTHER: Final[Mapping[str, tuple[str, ...]]] = {
    "wet": ("url", "identified_languages"),
    "wat": ("url",),
    "code": ("path", "language", "repository"),
    "mediawiki": ("title", "redirect", "revised"),
    "epub": ("book", "path"),
}
"""Further columns of strings that readers fill, and of numbers:"""

NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {"mediawiki": ("page", "namespace"), "epub": ("chapter",)}

DECODED: Final = frozenset({"files", "text", "code"})
"""Formats whose bytes become text here: `encoding` and `decode_confidence` say how."""

_MEMBER: Final = pa.field("member", pa.large_string())

CLASHES: Final = ("error", "place")
TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.large_string(),
    "int64": pa.int64(),
    "bool": pa.bool_(),
    "timestamp": CRAWLED_AT,
}
"""Types of declared columns. Fractions are declared as "string": datasets hold no floats of unknown rounding."""

SPECIAL: Final[Mapping[str, str]] = {"text": "string", "licence": "string", "crawled_at": "timestamp"}
"""Our own columns that readers fill, and their types."""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared input column: `name` in the input and `type`, one of `TYPES`."""

    name: str
    type: str = "string"

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise ConfigurationError(f"column {self.name!r}: type {self.type!r} is not one of {', '.join(TYPES)}")


@dataclass(frozen=True, slots=True)
class Reader:
    """How the files of one source become rows.

    Attributes:
        format: one of `FORMATS`.
        root: folder of the source, or a store where it is no local one; never part of a key.
        pattern: which files below `root`, as `pathlib.Path.glob` understands it; ids do not depend on it.
        source: name of the source: part of every id.
        columns: pairs (our name, `Column`). "text" is the text; "key" the natural key that names a record (else its
            place does); "licence" and "crawled_at" fill the rights columns; others become columns.
        ignore: input columns that are left out on purpose; others survive in `extra`.
        licence: SPDX id that the user asserts for the whole source, or None.
        on_clash: what two records with one natural key and different bytes are: an "error", or told apart by "place".
        excerpts: False forbids excerpts of this source's texts in samples and pages.
        max_record_bytes: longer records are refused as "record too large".
        max_damaged: largest share of the source's bytes (or rows) that may lie in gaps; more stops the run.
        listing: file that pins the files (`curate list` writes it), so that none is hashed before the run; or None.
            What it says of a file is the fingerprint of that file, and so in its key.
        form: what else the format needs to know (`curate.readers.forms`); None: nothing.
        unit_bytes: a file that is larger is read in several units at once where its format allows. Which records there
            are and what they are called does not depend on it; how they are cut into shards does.
    """

    format: str
    root: Path | Store = field(metadata={"key": False})
    pattern: str = field(metadata={"key": False})
    source: str
    columns: tuple[tuple[str, Column], ...] = ()
    ignore: tuple[str, ...] = ()
    licence: str | None = None
    on_clash: str = "error"
    excerpts: bool = True
    max_record_bytes: int = MAX_RECORD_BYTES
    max_damaged: str = field(default="0.5", metadata={"key": False})
    listing: Path | None = field(default=None, metadata={"key": False})
    form: Form | None = field(default=None, metadata=KEYED_IF_GIVEN)
    unit_bytes: int = field(default=UNIT_BYTES, metadata={"key": False})

    version = 6  # raised when what a reader makes of some file changes

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", source_root(self.root))
        for name, column in self.columns:
            if SPECIAL.get(name, column.type) != column.type:
                raise ConfigurationError(f"column {name!r} is a {SPECIAL[name]}, not {column.type}")
        if self.on_clash not in CLASHES:
            raise ConfigurationError(f"on_clash={self.on_clash!r} is not one of {', '.join(CLASHES)}")
        if self.unit_bytes < 1:
            raise ConfigurationError(f"unit_bytes={self.unit_bytes}: give a positive number of bytes")
        if not 0 <= float(self.max_damaged) <= 1:
            raise ConfigurationError(f"max_damaged={self.max_damaged}: give a share from 0 to 1")
        if not self.source or "/" in self.source:
            raise ConfigurationError(f"source={self.source!r}: give a name without '/'")
        reserved = {"id", "source", "origin", "optout", "licence_basis", "extra", "payload"} & {
            n for n, _ in self.columns
        }
        if reserved:
            raise ConfigurationError(f"columns {sorted(reserved)} are made by curate: choose other names")

    @property
    def keyed(self) -> bool:
        """Whether records carry a natural key, so that two files may hold the same record."""
        read = self.form.format if isinstance(self.form, TarForm) else self.format
        return self.on_clash == "error" and (read in NAMED or any(name == "key" for name, _ in self.columns))

    def column(self, name: str) -> Column | None:
        """Return the declared input column for our column `name`."""
        return dict(self.columns).get(name)

    def schema(self) -> pa.Schema:
        """Return the schema of the rows that this reader makes."""
        if isinstance(self.form, TarForm):
            return with_columns(self.inner(self.form).schema(), _MEMBER)
        further = [ENCODING, DECODE_CONFIDENCE] if self.format in DECODED else []
        further += [pa.field(name, pa.large_string()) for name in FURTHER.get(self.format, ())]
        if self.format in RAW:
            numbers = [pa.field(name, pa.int64()) for name in NUMBERS.get(self.format, ())]
            return with_columns(records(), *further, *numbers)
        if isinstance(self.form, WatForm):
            further += [pa.field(name, pa.large_string()) for name, _ in self.form.columns]
        special = {*BASE.names, "key"}
        further += [pa.field(name, TYPES[column.type]) for name, column in self.columns if name not in special]
        return documents(*further)

    def inner(self, form: TarForm) -> Reader:
        """Return the reader of the members of tar archives."""
        return replace(self, format=form.format, form=form.form)

    def __str__(self) -> str:
        return f"read_{self.format} {self.pattern} as {self.source!r}"


def source_root(root: str | Path | Store) -> Path | Store:
    """Return where a source is: a path for a local folder, a store for a URL.

    Raises:
        ConfigurationError: a URL of another kind.
    """
    try:
        store = root if isinstance(root, Store) else Store(root)
    except StoreError as error:
        raise ConfigurationError(str(error)) from None
    return store if store.is_remote else store.root


def declared_columns(columns: Mapping[str, str | Column] | None, text: str) -> tuple[tuple[str, Column], ...]:
    """Return `columns` as pairs in the order given; `text` is the input column of the text unless they name one."""
    given = {
        name: column if isinstance(column, Column) else Column(column, SPECIAL.get(name, "string"))
        for name, column in (columns or {}).items()
    }
    return tuple({"text": Column(text), **given}.items())
