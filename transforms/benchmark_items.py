"""Benchmarks as files of items: question, answer, choices and passage by the names of their fields.

`Benchmark.jsonl("gsm8k", "gsm8k_test.jsonl.zst", question="question", answer="answer")`; `.csv` and `.parquet` alike;
`.gz` and `.zst` are unpacked by their ending. A field name may go into nested values by dots ("choices.text"). Lists
of answers count as their first; a number or a letter as answer, beside choices, names one of them. For the common sets
`transforms.known_benchmark` knows the names.

Invariants: a benchmark is its name, the digest of its file, its format and its field names; where the file lies is no
part of it, and what is read later is checked against the digest. Items are numbered from 0 in the order of the file.
Cost: one pass over the file, all items in memory (benchmarks are small).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from blake3 import blake3

_IF_GIVEN: Final = {"key": "if given"}  # at its default such a field is in no key


class BenchmarkError(RuntimeError):
    """A benchmark file is not there, is another one than before, or has no items under the field names given."""


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a benchmark; parts that it does not have are empty."""

    number: int
    question: str
    answer: str = ""
    choices: tuple[str, ...] = ()
    passage: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A file of items. Make one with `jsonl`, `csv` or `parquet`.

    `question`, `answer`, `passage` and `choices` are field names, "" for what the benchmark does not have; choices that
    are fields of their own are named as a tuple. `split` names the part of the benchmark that the file is ("test").
    `counts_from` is the number of the first choice, where answers are numbers. `digest` is the BLAKE3 of the file,
    taken when the benchmark is named.

    Raises:
        BenchmarkError: the file is not there, or no field is named.
    """

    name: str
    path: Path = field(compare=False, metadata={"key": False})
    format: str
    question: str
    answer: str = ""
    passage: str = ""
    choices: str | tuple[str, ...] = ""
    split: str = field(default="", metadata=_IF_GIVEN)
    counts_from: int = field(default=0, metadata=_IF_GIVEN)
    digest: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if not self.name or not (self.question or self.passage):
            raise BenchmarkError(f"benchmark {self.name!r} needs a name, and a field for question or passage")
        if self.format not in _READERS:
            raise BenchmarkError(f"benchmark {self.name!r}: its format is one of {', '.join(_READERS)}")
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "choices", tuple(self.choices) if not isinstance(self.choices, str) else self.choices)
        object.__setattr__(self, "digest", blake3(_read(self.path)).hexdigest())

    @property
    def title(self) -> str:
        """Name, and split where there is one: "arc/test"."""
        return f"{self.name}/{self.split}" if self.split else self.name

    @classmethod
    def file(cls, name: str, path: str | Path, **fields: Any) -> Benchmark:
        """Return the benchmark in a file whose ending tells its format: .jsonl, .csv, .parquet; .gz and .zst behind.

        Raises:
            BenchmarkError: another ending.
        """
        endings = [ending for ending in Path(path).suffixes if ending not in (".gz", ".zst")]
        kind = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}.get((endings or [""])[-1])
        if kind is None:
            raise BenchmarkError(f"{path}: a benchmark file ends in .jsonl, .csv or .parquet (.gz, .zst)")
        return cls(name, Path(path), kind, **{"question": "", **fields})

    @classmethod
    def jsonl(cls, name: str, path: str | Path, *, question: str = "", **fields: Any) -> Benchmark:
        """Return the benchmark whose items are lines of JSON, plain, .gz or .zst; `fields` as above."""
        return cls(name, Path(path), "jsonl", question, **fields)

    @classmethod
    def csv(cls, name: str, path: str | Path, *, question: str = "", **fields: Any) -> Benchmark:
        """Return the benchmark whose items are rows under a header of comma-separated names, plain, .gz or .zst."""
        return cls(name, Path(path), "csv", question, **fields)

    @classmethod
    def parquet(cls, name: str, path: str | Path, *, question: str = "", **fields: Any) -> Benchmark:
        """Return the benchmark whose items are rows of a Parquet file."""
        return cls(name, Path(path), "parquet", question, **fields)

    def check(self) -> bytes:
        """Return the file's bytes, which have the digest.

        Raises:
            BenchmarkError: the file changed or is gone.
        """
        content = _read(self.path)
        if (found := blake3(content).hexdigest()) != self.digest:
            raise BenchmarkError(f"{self.path} has the digest {found}, the benchmark {self.name!r} had {self.digest}")
        return content

    def items(self) -> list[Item]:
        """Return the items.

        Raises:
            BenchmarkError: the file changed, is damaged, or has none of the fields.
        """
        rows = self.rows()
        self._check_fields(rows)
        return [self._item(number, row) for number, row in enumerate(rows)]

    def rows(self) -> list[Mapping[str, Any]]:
        """Return the items as they stand in the file.

        Raises:
            BenchmarkError: the file changed or is damaged.
        """
        return read_rows(self.path, self.format, self.check())

    def _check_fields(self, rows: list[Mapping[str, Any]]) -> None:
        for name in filter(None, (self.question, self.answer, self.passage, *self._choices)):
            if not any(value_at(row, name) is not None for row in rows):
                known = ", ".join(sorted(rows[0])) if rows else "no rows"
                raise BenchmarkError(f"benchmark {self.title!r}: no item has the field {name!r}; there are: {known}")

    @property
    def _choices(self) -> tuple[str, ...]:
        return (self.choices,) if isinstance(self.choices, str) else self.choices

    def _item(self, number: int, row: Mapping[str, Any]) -> Item:
        listed = [choice for name in self._choices for choice in _listed(value_at(row, name))]
        choices = tuple(map(_text, listed))
        answer = _answer(value_at(row, self.answer), choices, self.counts_from)
        return Item(number, _text(value_at(row, self.question)), answer, choices, _text(value_at(row, self.passage)))


def read_rows(path: Path, kind: str, content: bytes) -> list[Mapping[str, Any]]:
    """Return the rows of a file of format `kind` with this content.

    Raises:
        BenchmarkError: it is damaged.
    """
    try:
        return list(_READERS[kind](_unpacked(path, content)))
    except (ValueError, csv.Error, OSError, EOFError, zstandard.ZstdError, pa.ArrowException) as error:
        raise BenchmarkError(f"{path} cannot be read as {kind}: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BenchmarkError(f"the benchmark file {path} cannot be read: {error.strerror}") from error


def _unpacked(path: Path, content: bytes) -> bytes:
    if path.suffix == ".gz":
        return gzip.decompress(content)
    if path.suffix == ".zst":
        return bytes(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content), read_across_frames=True).read())
    return content


def _json_lines(content: bytes) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(content.split(b"\n")):
        if line.strip(b" \t\r\n"):
            row = json.loads(line.decode("utf-8-sig" if number == 0 else "utf-8"))
            if not isinstance(row, dict):
                raise ValueError(f"line {number + 1} is no JSON object")
            yield row


def _csv_rows(content: bytes) -> Iterable[Mapping[str, Any]]:
    return csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)


def _parquet_rows(content: bytes) -> Iterable[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = pq.read_table(pa.BufferReader(content)).to_pylist()
    return rows


_READERS: Final[Mapping[str, Callable[[bytes], Iterable[Mapping[str, Any]]]]] = {
    "jsonl": _json_lines,
    "csv": _csv_rows,
    "parquet": _parquet_rows,
}


def value_at(row: Any, name: str) -> Any:
    """Return the value under `name`, which may go into nested values by dots; None where there is none."""
    if not name:
        return None
    if isinstance(row, Mapping) and name in row:
        return row[name]
    for part in name.split("."):
        row = row.get(part) if isinstance(row, Mapping) else None
    return row


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _text(value: Any) -> str:
    """Return `value` as text that has an encoding: a lone surrogate of JSON becomes U+FFFD."""
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        return "\n".join(map(_text, value))
    return str(value).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _answer(value: Any, choices: tuple[str, ...], counts_from: int) -> str:
    """Return the text of an answer that may be a number or a letter of one of `choices`."""
    if isinstance(value, (list, tuple)):
        value = value[0] if value else None
    if isinstance(value, bool) or not choices:
        return _text(value)
    if isinstance(value, str) and value in choices:
        return value
    if isinstance(value, str) and len(value) == 1:
        if "A" <= value <= "Z":
            value = ord(value) - ord("A") + counts_from
        elif "0" <= value <= "9":
            value = int(value)
    if isinstance(value, int):
        place = value - counts_from
        return choices[place] if 0 <= place < len(choices) else ""
    return _text(value)
