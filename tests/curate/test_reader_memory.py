"""One huge line, record or member: refused or passed over in bounded memory, and what follows is read."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from collections.abc import Iterator

import pytest

from curate.readers.events import End, Gap, Read, Refused, totals
from curate.readers.forms import Form, TarForm, TextForm
from curate.readers.open import read_stream
from tests.curate.reading import reader_of
from tests.curate.test_archives import arc, arc_record
from tests.curate.test_warc import page

SIZE = 120 << 20
LIMIT = 1 << 20
PEAK = 24 << 20
FILLING = b"x" * (1 << 20)


class Long(io.RawIOBase):
    """Begins with `head`, goes on with `SIZE` bytes of filling, and ends with `tail`."""

    def __init__(self, head: bytes, tail: bytes) -> None:
        self._pieces = self._all(head, tail)
        self._rest = b""

    def _all(self, head: bytes, tail: bytes) -> Iterator[bytes]:
        yield head
        yield from (FILLING for _ in range(SIZE >> 20))
        yield tail

    def read(self, size: int = -1) -> bytes:
        self._rest = self._rest or next(self._pieces, b"")
        given, self._rest = self._rest[:size], self._rest[size:]
        return given


def member(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf()


HEADER = f"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: {SIZE}\r\n\r\n"
LINE = b'{"text":"a"}\n'
SMALL = member("b.jsonl", len(LINE)) + LINE.ljust(512, b"\0")
CASES: dict[str, tuple[str, bytes, bytes, Form | None]] = {
    "line": ("jsonl", b'{"text":"', b'"}\n{"text":"a"}\n', None),
    "row": ("csv", b"text\n", b"\na\n", None),
    "open quote": ("csv", b'text\n"', b"\na\n", None),
    "separated text": ("text", b"x", b"\n--\na", TextForm("\n--\n")),
    "page of a wiki": ("mediawiki", b"<page>", b"</page>" + b"<page><title>a</title><ns>0</ns><id>1</id>"
                       b"<revision><text>a</text></revision></page>", None),
    "record of a WARC": ("warc", HEADER.encode(), b"\r\n\r\n" + page(1), None),
    "record of an ARC": ("warc", arc()[0] + b"http://e.org/ 1.1.1.1 20080102030405 text/html %d\n" % SIZE,
                         b"\n" + arc_record("http://e.org/a", b"HTTP/1.0 200 OK\r\n\r\n<p>a"), None),
    "member of a tar": ("tar", member("a.bin", SIZE), SMALL, TarForm("jsonl", "*.jsonl")),
    "document in a tar": ("tar", member("a.txt", SIZE), SMALL, TarForm("text")),
    "line in a tar": ("tar", member("a.jsonl", SIZE), SMALL, TarForm("jsonl")),
}  # fmt: skip


@pytest.mark.parametrize("case", list(CASES))
def test_huge_records_cost_bounded_memory_and_what_follows_is_read(case: str) -> None:
    kind, head, tail, form = CASES[case]
    reader = reader_of(kind, form, max_record_bytes=LIMIT)
    tracemalloc.start()
    try:
        events = list(read_stream(reader, Long(head, tail), f"a.{kind}"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < PEAK
    assert all(total == end for total, end in totals(events).values())
    assert sum(isinstance(event, Read) for event in events) == 1
    assert case == "member of a tar" or any(isinstance(event, (Refused, Gap)) for event in events)
    assert sum(e.length for e in events if not isinstance(e, End)) == len(head) + SIZE + len(tail)  # type: ignore[union-attr]
