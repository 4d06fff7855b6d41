"""ARC, lz4 and Zstandard archives, WET, WAT, revisits: what is in them is read, what is damaged is a gap."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from curate.readers.events import End, Event, Gap, Read, Refused, Structural
from curate.readers.forms import WarcForm, WatForm
from curate.readers.warc import arc_milliseconds, read_warc_events
from tests.curate.reading import WARCS, check_tiling, gzipped, kinds, lost, mutated, read_as, values
from tests.curate.test_warc import page, record

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><p>"
PACKS = {"": bytes, ".gz": gzipped, ".lz4": lz4.frame.compress, ".zst": zstandard.compress}
PAGES = [page(number, 500 + 300 * number) for number in range(5)]


def arc_record(url: str, block: bytes, kind: str = "text/html", length: object = None, version: int = 1) -> bytes:
    size = len(block) if length is None else length
    between = "" if version == 1 else "200 - - 0 a.arc.gz "
    return f"{url} 10.0.0.1 20080102030405 {kind} {between}{size}\n".encode() + block + b"\n"


VERSION_BLOCK = b"1 0 Nobody\nURL IP-address Archive-date Content-type Archive-length\n"


def arc(*records: bytes, length: object = None) -> list[bytes]:
    return [arc_record("filedesc://a.arc", VERSION_BLOCK, "text/plain", length), *records]


RECORDS = [arc_record(f"http://example.org/{n} with blanks", PAGE + b"%d " % n * (40 * n + 1)) for n in range(4)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("ending", list(PACKS))
def test_arc_gives_its_pages_however_it_is_packed(ending: str, version: int) -> None:
    records = [arc_record(f"http://e.org/{n}?a b", PAGE + b"%d" % n, version=version) for n in range(3)]
    dns = arc_record("dns:e.org", b"20080102030405\ne.org. 1 IN A 1.1.1.1\n", "text/dns", version=version)
    data = b"".join(map(PACKS[ending], arc(*records, dns)))
    events = read_as("warc", data, "a.arc" + ending)
    assert values(events, "url", "payload", "crawled_at") == [
        (f"http://e.org/{n}?a b", b"<html><p>%d" % n, 1199243045000) for n in range(3)
    ]
    assert kinds(events) == ["version block"] and lost(events) == ["media type"]


@pytest.mark.parametrize("length", ["0", "5", "99999", "-1", "x"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_arc_with_a_wrong_length_loses_that_record_only(length: str, ending: str) -> None:
    bad = arc_record("http://example.org/bad", PAGE + b"bad", length=length)
    data = b"".join(map(PACKS[ending], [*arc(length=length), RECORDS[0], bad, *RECORDS[1:]]))
    events = read_as("warc", data, "a.arc" + ending)
    assert [url.split("/")[3][0] for url in values(events, "url")] == ["0", "1", "2", "3"]
    assert len(lost(events)) == 2


def test_arc_dates_mean_their_earliest_moment() -> None:
    assert arc_milliseconds("20080102030405") == 1199243045000
    assert arc_milliseconds("2008") == 1199145600000
    assert arc_milliseconds("20081302030405") is None


@pytest.mark.skipif(not WARCS.is_dir(), reason="../shared/data/warc is not there")
def test_arc_of_2008_with_a_wrong_header_gives_what_its_warc_gives() -> None:
    folder = WARCS / "commoncrawl-2008"
    counts = []
    for name in ("original-wrong-header.arc.gz", "sample.warc.gz"):
        events = read_as("warc", (folder / name).read_bytes(), name)
        counts.append(Counter(values(events, "url")) + Counter(lost(events)))
    assert counts[0] == counts[1] and counts[0].total() == 145


@pytest.mark.parametrize("ending", [".lz4", ".zst"])
@pytest.mark.parametrize("together", [1, 2, 5])
def test_warc_in_other_frames_is_read_as_in_gzip(ending: str, together: int) -> None:
    groups = [b"".join(PAGES[i : i + together]) for i in range(0, 5, together)]
    packed, gz = (b"".join(map(PACKS[e], groups)) for e in (ending, ".gz"))
    events, expected = read_as("warc", packed, "a.warc" + ending), read_as("warc", gz, "a.warc.gz")
    assert [e.values for e in events if isinstance(e, Read)] == [e.values for e in expected if isinstance(e, Read)]
    assert len(values(events, "url")) == 5


@pytest.mark.parametrize("ending", [".lz4", ".zst"])
def test_damaged_frame_is_a_gap_and_the_next_is_read(ending: str) -> None:
    frames = [PACKS[ending](page) for page in PAGES]
    data = b"".join([frames[0], frames[1][:-40], frames[2], frames[3][:20] + b"\xff" * 30 + frames[3][50:], frames[4]])
    events = read_as("warc", data, "a.warc" + ending)
    assert [url[-1] for url in values(events, "url")] == ["0", "2", "4"]
    assert len(lost(events)) == 2 and all(ending[1:] in reason for reason in lost(events))


@pytest.mark.parametrize("packed", [False, True])
def test_zstandard_archive_brings_its_dictionary(packed: bool) -> None:
    dictionary = zstandard.train_dictionary(4096, [page(n, 300)[:400] for n in range(300)])
    content = dictionary.as_bytes()
    stored = zstandard.compress(content) if packed else content
    compressor = zstandard.ZstdCompressor(dict_data=dictionary)
    head = b"\x5d\x2a\x4d\x18" + len(stored).to_bytes(4, "little") + stored
    data = head + b"".join(compressor.compress(each) for each in PAGES)
    events = read_as("warc", data, "a.warc.zst")
    assert len(values(events, "url")) == 5 and kinds(events) == ["dictionary"] and not lost(events)
    assert len(values(read_as("warc", data[:60] + data[70:], "a.warc.zst"), "url")) < 5  # without it: gaps, no crash


def test_wet_record_is_a_document() -> None:
    header = {"WARC_Identified_Content_Language": "fra,eng"}
    bad = record(2, b"\xff\xfe", "conversion", "text/plain")
    data = (
        record(1, "Bonjour à tous".encode(), "conversion", "text/plain", **header) + bad + record(3, b"x", "warcinfo")
    )
    events = read_as("wet", data, "a.warc.wet")
    assert values(events, "text", "url", "identified_languages") == [
        ("Bonjour à tous", "http://example.org/1", "fra,eng")
    ]
    assert lost(events) == ["not UTF-8"] and kinds(events) == ["warcinfo"]


def wat(number: int, kind: str = "response", metadata: object = None) -> bytes:
    envelope = {"Envelope": {"WARC-Header-Metadata": {"WARC-Type": kind}, "Payload-Metadata": metadata or {}}}
    return record(
        100 + number,
        json.dumps(envelope).encode(),
        "metadata",
        "application/json",
        WARC_Refers_To=f"<urn:test:{number}>",
    )


def test_wat_row_is_named_as_the_response_that_it_describes() -> None:
    head = {"HTTP-Response-Metadata": {"HTML-Metadata": {"Head": {"Title": "T", "Metas": [{"name": "a"}]}}}}
    data = wat(1, metadata=head) + wat(2, "request") + wat(3) + record(4, b"[" * 900, "metadata", "application/json")
    events = read_as("wat", data, "a.warc.wat")
    assert values(events, "text", "title", "metas", "links") == [
        ("T", "T", '[{"name":"a"}]', None),
        ("", None, None, None),
    ]
    assert [event.key for event in events if isinstance(event, Read)] == [b"<urn:test:1>", b"<urn:test:3>"]
    assert kinds(events) == ["metadata of request"] and lost(events) == ["nested too deep"]
    form = WatForm((("kind", "WARC-Header-Metadata/WARC-Type"), ("none", "a/b")))
    assert values(read_as("wat", wat(1), "a.wat", form), "kind", "none") == [("response", None)]


def resolved(data: bytes, name: str) -> list[Event]:
    form = WarcForm(revisits="resolve")
    events = list(read_warc_events(io.BytesIO(data), name, 1 << 20, form, lambda: io.BytesIO(data)))
    check_tiling(events)
    return [event for event in events if not isinstance(event, End)]


@pytest.mark.parametrize("ending", list(PACKS))
def test_revisit_becomes_the_page_that_it_refers_to(ending: str) -> None:
    by_id = record(7, b"", "revisit", WARC_Refers_To="<urn:test:1>")
    by_place = record(
        8,
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        "revisit",
        WARC_Refers_To_Target_URI="http://example.org/2",
        WARC_Refers_To_Date="2024-02-29T12:30:45Z",
    )
    gone = record(9, b"", "revisit", WARC_Refers_To="<urn:test:99>")
    data = b"".join(map(PACKS[ending], [*PAGES, by_id, by_place, gone]))
    events = resolved(data, "a.warc" + ending)
    pages = dict(values(events, "url", "payload"))
    assert pages["http://example.org/7"] == pages["http://example.org/1"]
    assert pages["http://example.org/8"] == pages["http://example.org/2"]
    assert [(e.reason, e.detail) for e in events if isinstance(e, Refused)] == [
        ("revisit of another file", "<urn:test:99>")
    ]
    assert kinds(read_as("warc", data, "a.warc" + ending)) == ["revisit"] * 3


def test_statuses_that_are_wanted_become_records() -> None:
    data = record(1, b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n<p>gone")
    assert lost(read_as("warc", data)) == ["http status"]
    assert values(read_as("warc", data, form=WarcForm(statuses=(200, 404))), "payload") == [b"<p>gone"]
    assert values(read_as("warc", data, form=WarcForm(statuses=None)), "payload") == [b"<p>gone"]


SAMPLES = {
    f"a.{kind}{ending}": b"".join(map(pack, parts))
    for kind, parts in {"warc": PAGES, "arc": arc(*RECORDS)}.items()
    for ending, pack in PACKS.items()
}


@pytest.mark.parametrize("name", list(SAMPLES))
def test_mutated_archives_end_in_records_and_gaps_of_all_bytes(name: str) -> None:
    chance = random.Random(name)
    for _ in range(40):
        data = mutated(SAMPLES[name], chance)
        events = list(read_warc_events(io.BytesIO(data), name, 1 << 20))
        check_tiling(events)
        if not any(event.place == "stream" for event in events):
            assert sum(e.length for e in events if not isinstance(e, End)) == len(data)  # type: ignore[union-attr]


@pytest.mark.skipif(not WARCS.is_dir(), reason="../shared/data/warc is not there")
def test_wat_and_wet_of_one_page_are_read() -> None:
    folder: Path = WARCS / "commoncrawl-whirlwind"
    (text,) = values(read_as("wet", (folder / "whirlwind.warc.wet.gz").read_bytes(), "w.wet.gz"), "text")
    assert text.startswith("Escopete")
    events = read_as("wat", (folder / "whirlwind.warc.wat.gz").read_bytes(), "w.wat.gz")
    assert [type(event) for event in events] == [Structural, Structural] and not any(isinstance(e, Gap) for e in events)
