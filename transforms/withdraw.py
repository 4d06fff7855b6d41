"""Documents that must not be used: a list of them, each with a reason and a date, that grows as requests come in.

`WithdrawList(Path("withdrawn.jsonl"))` drops what a line of the file names, by one of

    {"id": "9f…", "reason": "request of the author", "date": "2026-11-30"}
    {"url": "https://example.com/a", "reason": "court order", "date": "2026-11-30"}
    {"text_digest": "0c…", "reason": "licence withdrawn", "date": "2026-11-30"}

URLs are compared in their normalised form. Apply it right after reading, or right after `ExtractText()`: nothing of
such a document is written then, but for its id, its URL, the digest of its text, and the number of the line.

Invariants: what goes depends on the document and the file alone; the file's digest is part of every key after it, its
path is not. Cost: the list in memory; some microseconds a document where it names URLs or text digests, else less.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
from blake3 import blake3

from transforms.canonical import canonical_json
from transforms.duplicates import text_digests
from transforms.outcome import Outcome, SchemaError, kept

NAMES: Final = ("id", "url", "text_digest")
"""What a line names a document by: one of these."""

_HEX: Final = frozenset("0123456789abcdef")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BLANK: Final = " \t\r\n"
_PORTS: Final = {"http": ":80", "https": ":443"}


def withholds(transform: object) -> bool:
    """Return whether no excerpt may be shown of what `transform` drops, as it is withdrawn."""
    return bool(getattr(transform, "withholds", False))


class WithdrawError(ValueError):
    """A list that cannot be used: a line that names no document, or another file than before."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a list: its number from 1, what it names a document by, and why that goes."""

    number: int
    by: str
    reason: str
    date: str

    @property
    def evidence(self) -> str:
        """What the ledger says: where to look, and nothing of the document."""
        return canonical_json({"line": self.number, "by": self.by, "date": self.date})


Lines = Mapping[str, Mapping[str, Line]]
"""What a list names documents by → hex digits or normalised URL → the first line that names it."""


@dataclass(frozen=True, slots=True)
class WithdrawList:
    """Drops the documents that the list at `path` names, as "withdrawn: …".

    Raises:
        WithdrawError: the file is not there, or a line is malformed; the message has its number.
    """

    path: Path = field(compare=False, metadata={"key": False})
    digest: str = field(init=False, default="")

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    withholds: ClassVar[bool] = True
    """No excerpt of what it drops may be shown."""

    def __post_init__(self) -> None:
        """Read the list: what is wrong with it is said before any work."""
        path = Path(self.path)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise WithdrawError(
                f"{path}: {error.strerror}: a WithdrawList needs its list, which may be empty"
            ) from None
        parse_lines(content, str(path))
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "digest", blake3(content).hexdigest())

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: the list names texts, and there is no text yet.
        """
        if "text" not in schema.names and (texts := _lines(self.path, self.digest)["text_digest"]):
            line = min(line.number for line in texts.values())
            raise SchemaError(
                f"WithdrawList: line {line} of {self.path} names a text by its digest, and records have no text yet: "
                "apply the list right after ExtractText()"
            )
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what the list names.

        Raises:
            WithdrawError: the file changed since the list was named.
        """
        found = self._found(batch, _lines(self.path, self.digest))
        ids = batch.column("id")
        dropped = [
            {
                "id": ids[row].as_py(),
                "transform": "WithdrawList",
                "reason": f"withdrawn: {line.reason}",
                "evidence": line.evidence,
            }
            for row, line in sorted(found.items())
        ]
        stays = [row not in found for row in range(batch.num_rows)]
        return kept(batch.filter(pa.array(stays, pa.bool_())) if found else batch, dropped=dropped)

    def _found(self, batch: pa.RecordBatch, lines: Lines) -> dict[int, Line]:
        """Return row → the first line that names it."""
        found: dict[int, Line] = {}
        for by, listed in lines.items():
            if listed and by in ("id", *_columns_for(by, batch)):
                for row, name in enumerate(_names(by, batch)):
                    line = listed.get(name)
                    if line is not None and (row not in found or line.number < found[row].number):
                        found[row] = line
        return found


def _columns_for(by: str, batch: pa.RecordBatch) -> tuple[str, ...]:
    """Return `by` where the batch has the column that it is looked up in: files, for one, have no URL."""
    column = {"text_digest": "text"}.get(by, by)
    return (by,) if batch.schema.get_field_index(column) >= 0 else ()


def _names(by: str, batch: pa.RecordBatch) -> list[str]:
    if by == "url":
        return ["" if url is None else normalised_url(url) for url in batch.column("url").to_pylist()]
    column = batch.column("id") if by == "id" else text_digests(batch.column("text"))
    return [value.hex() for value in column.to_pylist()]


@lru_cache(maxsize=4)
def _lines(path: Path, digest: str) -> Lines:
    """Return the lines of the list, read once per process."""
    content = path.read_bytes()
    if blake3(content).hexdigest() != digest:
        raise WithdrawError(f"{path} was changed while the recipe ran: run it again")
    return parse_lines(content, str(path))


def parse_lines(content: bytes, path: str) -> Lines:
    """Return the lines of a list; empty ones are left out.

    Raises:
        WithdrawError: a line is malformed; the message has `path` and its number.
    """
    lines: dict[str, dict[str, Line]] = {name: {} for name in NAMES}
    for number, raw in enumerate(content.split(b"\n"), 1):
        if raw.strip(_BLANK.encode()):
            try:
                line, name = _line(number, json.loads(raw))
            except (ValueError, TypeError, RecursionError) as error:
                raise WithdrawError(f"{path} line {number}: {error}") from None
            lines[line.by].setdefault(name, line)
    return lines


def _line(number: int, value: Any) -> tuple[Line, str]:
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    named = [name for name in NAMES if name in value]
    if len(named) != 1:
        raise ValueError(f"it names a document by {' and '.join(named) or 'nothing'}: give one of {', '.join(NAMES)}")
    if strange := sorted(set(value) - {*NAMES, "reason", "date"}):
        raise ValueError(f"the field {strange[0]!r} is unknown")
    for name in (named[0], "reason", "date"):
        if not isinstance(value.get(name), str) or not value[name].strip(_BLANK):
            raise ValueError(f"{name!r} must be a text that is not empty")
    _check_date(value["date"])
    return Line(number, named[0], value["reason"].strip(_BLANK), value["date"]), _name(named[0], value[named[0]])


def _name(by: str, value: str) -> str:
    if by == "url":
        return normalised_url(value)
    name = "".join(chr(ord(c) + 32) if c in _UPPER else c for c in value.strip(_BLANK))
    if len(name) != 32 or not set(name) <= _HEX:
        raise ValueError(f"{by!r} must have 32 hex digits, as `curate where` prints them")
    return name


def _check_date(date: str) -> None:
    year, *rest = date.split("-")
    parts = [year, *rest]
    sizes = [len(part) for part in parts]
    digits = all(set(part) <= set("0123456789") for part in parts)
    if sizes != [4, 2, 2] or not digits or not (1 <= int(parts[1]) <= 12 and 1 <= int(parts[2]) <= 31):
        raise ValueError(f"'date' is {date!r}: write it as 2026-11-30")


def normalised_url(url: str) -> str:
    """Return `url` without what does not change the page.

    Scheme and host are in lower case, "http" stands for "https", default port and fragment are left out, an empty path
    is "/", escapes of letters, digits, "-", ".", "_" and "~" are undone and the others have upper-case digits.
    """
    text = url.strip(_BLANK).partition("#")[0]
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _escapes(text)
    scheme = _lower(scheme)
    cut = min((place for sign in "/?\\" if (place := rest.find(sign)) >= 0), default=len(rest))
    host, path = rest[:cut], rest[cut:]
    user, at, host = host.rpartition("@")
    host = _lower(host).removesuffix(_PORTS.get(scheme, "\0"))
    path = path if path.startswith("/") else f"/{path}"
    return f"{'https' if scheme == 'http' else scheme}://{user}{at}{host}{_escapes(path)}"


def _lower(text: str) -> str:
    return "".join(chr(ord(c) + 32) if c in _UPPER else c for c in text)


def _escapes(text: str) -> str:
    first, *others = text.split("%")
    return first + "".join(_escape(part) for part in others)


def _escape(part: str) -> str:
    """Return what stands after a "%", with the escape undone where that makes no difference."""
    digits = _lower(part[:2])
    if len(digits) < 2 or not set(digits) <= _HEX:
        return f"%{part}"
    sign = chr(int(digits, 16))
    return (sign if sign in _UNRESERVED else f"%{int(digits, 16):02X}") + part[2:]
