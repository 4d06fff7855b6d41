"""WARC archives: what becomes a document, what is refused, what is damage; every byte accounted for."""

from __future__ import annotations

import gzip
import io
import random
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.readers.events import End, Event, Gap, Read, Refused, Structural, totals
from curate.readers.warc import milliseconds, read_warc_events


def gzipped(content: bytes, level: int = 9) -> bytes:
    """Compress without the clock: test names and inputs are the same in every process."""
    return gzip.compress(content, level, mtime=0)


WARCS = Path(__file__).parents[2].parent / "shared" / "data" / "warc"
FILES = sorted(path for path in WARCS.rglob("*") if path.is_file())


def record(
    number: int, block: bytes, kind: str = "response", media_type: str = "application/http", **more: str
) -> bytes:
    fields = {
        "WARC-Type": kind,
        "WARC-Record-ID": f"<urn:test:{number}>",
        "WARC-Target-URI": f"http://example.org/{number}",
        "WARC-Date": "2024-02-29T12:30:45Z",
        "Content-Type": media_type,
        "Content-Length": str(len(block)),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    header = "WARC/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return header.encode() + b"\r\n" + block + b"\r\n\r\n"


def page(number: int, size: int = 400) -> bytes:
    random_ = random.Random(number)
    body = b"<html><p>" + " ".join(str(random_.random()) for _ in range(size // 18)).encode()
    return record(number, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body)


def read(data: bytes, name: str = "a.warc", bound: int = 1 << 20) -> list[Event]:
    events = list(read_warc_events(io.BytesIO(data), name, bound))
    check(events, len(data))
    return events


def check(events: list[Event], size: int) -> None:
    """The invariant of readers: ranges in order, without overlap, adding up to the totals."""
    sums = totals(events)
    assert all(total == end for total, end in sums.values()), sums
    if not any(isinstance(event, End) and event.place == "stream" for event in events):
        assert sums["stored"] == (size, size)
    for place in sums:
        ranges = [(e.offset, e.length) for e in events if not isinstance(e, End) and e.place == place]
        assert all(a[0] + a[1] <= b[0] for a, b in pairwise(ranges))
        assert place == "stored" or all(a[0] + a[1] == b[0] for a, b in pairwise(ranges))


def keys(events: list[Event]) -> list[int]:
    return [int((e.key or b"").split(b":")[2][:-1]) for e in events if isinstance(e, (Read, Refused))]


def gaps(events: list[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Gap)]


@pytest.mark.skipif(not FILES, reason="../shared/data/warc is not there")
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(WARCS)))
def test_archives_of_other_projects_end_in_records_and_gaps_of_all_bytes(path: Path) -> None:
    read(path.read_bytes(), path.name)


@pytest.mark.skipif(not FILES, reason="../shared/data/warc is not there")
def test_crawl_sample_gives_the_documents_that_are_in_it() -> None:
    data = (WARCS / "commoncrawl-2008/sample.warc.gz").read_bytes()
    events = read(data, "sample.warc.gz")
    assert Counter((type(e).__name__, getattr(e, "reason", None)) for e in events) == {
        ("Read", None): 125,
        ("Refused", "http status"): 14,
        ("Refused", "media type"): 6,
        ("End", None): 1,
    }


SOUND = [path for path in FILES if path.name.endswith((".warc", ".warc.gz", ".wet.gz"))]
SOUND = [path for path in SOUND if path.name not in ("clipped.warc.gz", "example-trunc.warc")]  # fastwarc raises


@pytest.mark.skipif(not FILES, reason="../shared/data/warc is not there")
@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_framing_of_sound_archives_finds_what_fastwarc_finds(path: Path) -> None:
    events = read(path.read_bytes(), path.name)
    found = [event for event in events if not isinstance(event, (End, Gap))]
    expected = list(ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=False, quirks_mode=True))
    documents = WarcRecordType.response | WarcRecordType.resource | WarcRecordType.conversion
    ids = [event.key for event in events if isinstance(event, (Read, Refused))]
    assert len(found) == len(expected)
    assert ids == [r.headers["WARC-Record-ID"].encode() for r in expected if r.record_type & documents]


def test_response_becomes_a_record_with_its_columns() -> None:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; Charset=ISO-8859-2\r\n\r\n<p>x</p>"
    data = record(7, block)
    (event, end) = read(data)
    assert end == End("stored", len(data))
    assert event == Read(
        "stored",
        0,
        len(data),
        0,
        b"<urn:test:7>",
        {
            "payload": b"<p>x</p>",
            "content_type": "text/html",
            "http_charset": "iso-8859-2",
            "url": "http://example.org/7",
            "optout_headers": "[]",
            "crawled_at": 1709209845000,
        },
    )


def test_opt_out_signals_of_the_http_header_come_along() -> None:
    header = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Robots-Tag: noai\r\nTDM-Reservation: 1\r\n\r\n<p>x</p>"
    (event, _) = read(record(1, header))
    assert isinstance(event, Read)
    assert event.values["optout_headers"] == '["x-robots-tag: noai","tdm-reservation header: 1"]'
    (event, _) = read(record(2, b"<p>x", "resource", "text/html"))
    assert isinstance(event, Read) and event.values["optout_headers"] is None


def test_records_of_each_kind_become_what_they_are() -> None:
    data = b"".join(
        [
            record(0, b"software: x\r\n", "warcinfo"),
            record(1, b"GET / HTTP/1.1\r\n\r\n", "request"),
            record(2, b"a: b\r\n", "metadata"),
            record(3, b"", "revisit"),
            record(4, b"?", "unheard-of"),
            record(5, b"Plain words.", "conversion", "text/plain"),
            record(6, b"<p>x", "resource", "text/html"),
            record(7, b"\x89PNG", "resource", "image/png"),
            record(8, b"more", "continuation"),
            record(9, b"HTTP/1.1 200 OK\r\n\r\n<p>", WARC_Segment_Number="1"),
            record(10, b"20240101", "response", "text/dns"),
        ]
    )
    events = read(data)[:-1]
    assert [e.kind for e in events if isinstance(e, Structural)] == [
        "warcinfo",
        "request",
        "metadata",
        "revisit",
        "other type",
    ]
    assert [(e.values["content_type"], e.values["payload"]) for e in events if isinstance(e, Read)] == [
        ("text/plain", b"Plain words."),
        ("text/html", b"<p>x"),
    ]
    assert [(e.reason, e.detail) for e in events if isinstance(e, Refused)] == [
        ("media type", "image/png"),
        ("segmented record", None),
        ("segmented record", None),
        ("no http header", None),
    ]


@pytest.mark.parametrize("name", ["a.txt", "a.bin.gz", "a.warc.bz2", "a.lz4"])
def test_other_formats_are_one_gap_over_the_whole_file(name: str) -> None:
    data = b"something else" * 50_000
    assert read(data, name) == [Gap("stored", 0, len(data), "unsupported format", None), End("stored", len(data))]


def test_empty_file_ends_at_once() -> None:
    assert read(b"") == [End("stored", 0)]
    assert read(b"", "a.warc.gz") == [End("stored", 0)]


@pytest.mark.parametrize("length", ["9", "399", "431", "100000", "999999999999999", "", "-5", "12a", "9" * 30])
@pytest.mark.parametrize("packed", [False, True])
def test_wrong_content_length_costs_its_own_record_only(length: str, packed: bool) -> None:
    pack = gzip.compress if packed else bytes
    block = page(1).split(b"\r\n\r\n", 1)[1]
    bad = record(1, block, Content_Length=length)
    events = read(b"".join(map(pack, [page(0), bad, page(2), page(3)])), "a.warc.gz" if packed else "a.warc")
    assert [key for key in keys(events) if key != 1] == [0, 2, 3]
    assert len(gaps(events)) == 1
    assert set(gaps(events)) <= {"wrong content length", "bad record header", "truncated record"}
    assert all(event.place == "stored" for event in events)


def test_garbage_between_records_is_one_gap() -> None:
    events = read(page(0) + b"garbage WARC/1.0\r\nno header\r\n\r\n WARC/" + page(1))
    assert keys(events) == [0, 1]
    assert gaps(events) == ["no record begins here"]


def test_record_above_the_bound_is_refused_and_not_loaded() -> None:
    big = record(1, b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 300_000)
    for data, name in ((page(0) + big + page(2), "a.warc"), (gzipped(page(0) + big + page(2)), "a.warc.gz")):
        events = read(data, name, bound=10_000)
        assert keys(events) == [0, 1, 2]
        assert [(e.reason, e.detail) for e in events if isinstance(e, Refused)] == [("record too large", "300019")]


def test_gzip_bomb_is_given_up_and_the_next_member_found() -> None:
    bomb = gzipped(record(1, b"\0" * (40 << 20)), 9)
    events = read(gzipped(page(0)) + bomb + gzipped(page(2)), "a.warc.gz", bound=1000)
    assert keys(events) == [0, 2]
    assert gaps(events) == ["gzip member inflates too far"]


def test_one_stream_is_placed_by_decompressed_bytes() -> None:
    data = page(0) + page(1) + page(2)
    events = read(gzipped(data), "a.warc.gz")
    assert [(e.place, e.offset) for e in events if isinstance(e, Read)] == [
        ("stream", 0),
        ("stream", len(page(0))),
        ("stream", len(page(0) + page(1))),
    ]
    assert totals(events) == {"stored": (0, 0), "stream": (len(data), len(data))}


def test_one_stream_that_is_cut_off_keeps_what_is_whole_and_ends_in_a_stored_gap() -> None:
    packed = gzipped(b"".join(page(i, 4000) for i in range(9)))
    events = read(packed[: len(packed) // 2], "a.warc.gz")
    assert keys(events) == [0, 1, 2, 3]
    assert gaps(events) == ["truncated record", "truncated gzip member"]


def test_members_that_cut_records_anywhere_are_read_as_one_stream() -> None:
    data = b"".join(page(i) for i in range(9))
    blocks = b"".join(gzipped(data[at : at + 333]) for at in range(0, len(data), 333))
    assert keys(read(blocks, "a.warc.gz")) == list(range(9))


def test_archives_put_together_keep_their_own_places() -> None:
    data = gzipped(page(0)) + gzipped(page(1) + page(2)) + gzipped(b"") + gzipped(page(3))
    events = read(data, "a.warc.gz")
    assert [e.place for e in events if isinstance(e, Read)] == ["stored", "stream", "stream", "stored"]
    assert [e.kind for e in events if isinstance(e, Structural)] == ["empty member"]
    end = next(e for e in events if isinstance(e, End) and e.place == "stored")
    assert end.total == len(data) - len(gzipped(page(1) + page(2)))


def test_members_of_something_else_and_padding_are_gaps() -> None:
    data = gzipped(page(0)) + gzipped(b"not a record") + gzipped(page(1)) + b"\0" * 512
    events = read(data, "a.warc.gz")
    assert keys(events) == [0, 1]
    assert gaps(events) == ["no record begins here", "no gzip member begins here"]


def test_bad_checksum_makes_the_member_a_gap() -> None:
    first = gzipped(page(0))
    data = first[:-8] + bytes([first[-8] ^ 1]) + first[-7:] + gzipped(page(1))
    events = read(data, "a.warc.gz")
    assert keys(events) == [1]
    assert events[0] == Gap("stored", 0, len(first), "damaged gzip member", None)


class Dribble(io.BytesIO):
    """A file that returns a few bytes at a time and can do nothing but read."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, 1 + self.tell() % 7))

    def seek(self, *_: object) -> int:
        raise AssertionError("readers go forward only")


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_events_do_not_depend_on_how_the_file_is_read(name: str) -> None:
    pack = gzip.compress if name.endswith("gz") else bytes
    data = b"".join(pack(page(i)) for i in range(4)) + b"junk" + pack(page(5))[9:] + pack(page(6) + page(7))
    assert list(read_warc_events(Dribble(data), name)) == read(data, name)


def test_hostile_members_inside_members_end_in_linear_time() -> None:
    data = b""
    for _ in range(1500):  # each member holds all that follow, and none ends as it should
        data = gzipped(b"WARC/1.0\r\n" + data[:60_000], 0)[:-4] + b"oops"
    events = read(data[:60_000], "a.warc.gz")
    assert len(events) < 500


PAGES = [page(i, 200 + 300 * (i % 3)) for i in range(6)]
MEMBERS = [gzipped(one) for one in PAGES]


def starts(parts: list[bytes]) -> list[int]:
    return [sum(map(len, parts[:i])) for i in range(len(parts) + 1)]


@settings(max_examples=300)
@given(at=st.integers(0, 10**9), mask=st.integers(1, 255), packed=st.booleans())
def test_flipped_byte_costs_the_record_it_hits_and_no_other(at: int, mask: int, packed: bool) -> None:
    parts = MEMBERS if packed else PAGES
    data = bytearray(b"".join(parts))
    at %= len(data)
    data[at] ^= mask
    hit = next(i for i, start in enumerate(starts(parts)[1:]) if at < start)
    events = read(bytes(data), "a.warc.gz" if packed else "a.warc")
    assert {i for i in range(6) if i != hit} <= set(read_keys(events))


def read_keys(events: list[Event]) -> list[int]:
    """Keys of the documents whose payload is what it was."""
    payloads = {page_.split(b"\r\n\r\n", 2)[2][:-4]: i for i, page_ in enumerate(PAGES)}
    found = [payloads.get(e.values["payload"], -1) for e in events if isinstance(e, Read)]  # type: ignore[call-overload]
    return list(found)


@settings(max_examples=150)
@given(at=st.integers(0, 10**9), packed=st.booleans())
def test_truncation_anywhere_keeps_the_records_before_it(at: int, packed: bool) -> None:
    parts = MEMBERS if packed else PAGES
    data = b"".join(parts)
    at %= len(data) + 1
    events = read(data[:at], "a.warc.gz" if packed else "a.warc")
    whole = sum(1 for start in starts(parts)[1:] if start <= at)
    assert read_keys(events)[:whole] == list(range(whole))
    assert any(isinstance(e, Gap) for e in events) or at >= starts(parts)[whole] - 4 or at in starts(parts)


@settings(max_examples=150)
@given(
    at=st.integers(0, 6),
    garbage=st.one_of(
        st.binary(min_size=1, max_size=300),
        st.sampled_from([PAGES[0][:100], MEMBERS[1][:50], MEMBERS[2][20:], b"\x1f\x8b\x08\0" * 9, b"WARC/1.0\r\n" * 5]),
    ),
    packed=st.booleans(),
)
def test_spliced_garbage_between_records_costs_none(at: int, garbage: bytes, packed: bool) -> None:
    parts = MEMBERS if packed else PAGES
    events = read(b"".join([*parts[:at], garbage, *parts[at:]]), "a.warc.gz" if packed else "a.warc")
    assert set(range(6)) <= set(read_keys(events))


@settings(max_examples=150)
@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from([*PAGES, *MEMBERS]).flatmap(
                lambda part: st.tuples(st.integers(0, len(part)), st.integers(0, len(part))).map(
                    lambda cut: part[min(cut) : max(cut)]
                )
            ),
            st.sampled_from(
                [b"WARC/1.0\r\n", b"Content-Length: 10\r\n", b"\r\n\r\n", b"\x1f\x8b\x08\x00", b"\x1f\x8b"]
            ),
            st.just(gzipped(b"")),
            st.just(gzipped(PAGES[0] + PAGES[1][:50])),
        ),
        max_size=12,
    ),
    name=st.sampled_from(["a.warc", "a.warc.gz", "a", "a.wet.gz"]),
)
def test_any_bytes_end_in_events_that_add_up(pieces: list[bytes], name: str) -> None:
    read(b"".join(pieces), name, bound=1000)


@settings(max_examples=100)
@given(at=st.integers(0, 10**9), mask=st.integers(1, 255))
def test_flipped_byte_in_one_stream_keeps_the_records_before_it(at: int, mask: int) -> None:
    data = b"".join(page(i, 3000) for i in range(8))
    packer = zlib.compressobj(6, wbits=31)
    packed = bytearray(packer.compress(data) + packer.flush())
    at %= len(packed)
    packed[at] ^= mask
    events = read(bytes(packed), "a.warc.gz")
    sound = len(zlib.decompressobj(31).decompress(bytes(packed[: max(at - 1, 0)]))) if at > 10 else 0
    ends = starts([page(i, 3000) for i in range(8)])[1:]
    whole = [i for i, end in enumerate(ends) if end <= sound]
    documents = [e.key for e in events if isinstance(e, Read)]
    # damage right behind the first record looks like the damaged member of a single record, which is not trusted
    assert documents[: len(whole)] == [b"<urn:test:%d>" % i for i in whole] or (len(whole) <= 1 and not documents)


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2008-05-09T19:02:41Z", 1210359761000),
        ("2020-01-01T00:00:00.123456789Z", 1577836800123),
        ("1970-01-01", 0),
        ("1970-01", 0),
        ("1969-12-31T23:59:59.5Z", -500),
        ("2023-02-30T00:00:00Z", None),
        ("2023-01-01T24:00:00Z", None),
        ("２０２０-01-01", None),
        ("", None),
        ("yesterday", None),
    ],
)
def test_dates_become_milliseconds_or_nothing(date: str, expected: int | None) -> None:
    assert milliseconds(date) == expected
