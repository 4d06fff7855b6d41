"""What a panel says as values: tables, names with values, what it leaves out; made with the HTML that shows them.

Invariants: a value is what the page shows. An integer of a column of numbers is one, other numbers lose the narrow
spaces that group their digits; everything else is the text of its cell, hidden characters named as on the page, so that
no value can hide or reorder anything elsewhere. Cost: one pass over the cells.
"""

from __future__ import annotations

import csv
import io
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, Final
from urllib.parse import quote

from viewers.numbers import MINUS, THIN

GROUP: Final = "group"
"""The first column of a table whose rows stand under headings: the heading."""

MEDIA_TYPE: Final = "data:text/csv;charset=utf-8,"
JSON_TYPE: Final = "data:application/json;base64,"
NAME_LENGTH: Final = 60

_TAG: Final = re.compile(r"<[^>]*>")
_INTEGER: Final = re.compile(rf"0|{MINUS}?[1-9]\d{{0,2}}(?:{THIN}\d{{3}})*", re.ASCII)
_NUMBER: Final = re.compile(rf"[\d{THIN}.,:%<>≈=/±×+{MINUS}– ]*\d[\d{THIN}.,:%<>≈=/±×+{MINUS}– ]*")
_FORMULA: Final = re.compile(r"[=+\-@\t]")

Value = int | str


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its caption, how far it can be trusted, and its cells row by row."""

    caption: str
    mark: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    @property
    def name(self) -> str:
        """Return the caption as the beginning of a file name: lower-case ASCII letters, digits and hyphens."""
        words = re.findall("[a-z0-9]+", self.caption.lower())
        return "-".join(words)[:NAME_LENGTH].strip("-") or "table"

    def json(self) -> dict[str, Any]:
        """Return the table as JSON has it."""
        return {
            "caption": self.caption,
            "mark": self.mark,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }

    def csv(self) -> str:
        """Return the table as CSV (RFC 4180, but with line feeds); a text that a spreadsheet would run gets a "'"."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_inert(name) for name in self.columns])
        writer.writerows([_inert(value) for value in row] for row in self.rows)
        return text.getvalue()

    def address(self) -> str:
        """Return the table as an address that holds it: percent-encoded CSV, so that nothing is asked for."""
        return csv_address(self.csv())


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values of a definition list."""

    pairs: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many of what are not shown."""

    count: int
    what: str


Datum = Table | Facts | LeftOut
"""What a piece of a page holds as values."""


def cell(value: str) -> str:
    """Return a text as a cell of CSV, quoted where it must be; one that a spreadsheet would run gets a "'"."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([_inert(value)])
    return line.getvalue()


def csv_address(content: str) -> str:
    """Return CSV as an address that holds it."""
    return MEDIA_TYPE + quote(content, safe=",:;()/=+")


def json_address(content: bytes) -> str:
    """Return JSON as an address that holds it."""
    return JSON_TYPE + b64encode(content).decode()


def shown(html: str) -> str:
    """Return the text that a browser shows of a cell made by `viewers.markup`; lines of their own are kept apart."""
    lines = html.replace("<br>", " ").replace("</li><li>", "; ")
    return unescape(_TAG.sub("", lines)).strip()


def number_in(html: str) -> Value:
    """Return what a cell of a column of numbers says; its text where that is no number."""
    text = shown(html)
    if _NUMBER.fullmatch(text) is None:
        return text
    if _INTEGER.fullmatch(text):
        return int(text.replace(THIN, "").replace(MINUS, "-"))
    return text.replace(THIN, "")


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns, those that came before with a number: "out", "out 2"."""
    found: list[str] = []
    for name in names:
        number, new = 2, name
        while new in found:
            number, new = number + 1, f"{name} {number}"
        found.append(new)
    return tuple(found)


def json_of(data: Sequence[Datum]) -> dict[str, Any]:
    """Return tables, facts and what is left out, each in the order of the page."""
    return {
        "tables": [datum.json() for datum in data if isinstance(datum, Table)],
        "facts": [[list(pair) for pair in datum.pairs] for datum in data if isinstance(datum, Facts)],
        "left_out": [{"count": d.count, "what": d.what} for d in data if isinstance(d, LeftOut)],
    }


def _inert(value: Value) -> Value:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
