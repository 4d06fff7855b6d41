"""Wikitext and PDF text layers as documents."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of
from transforms.foreign_formats import ExtractPdf, ExtractWikitext, plain_text
from transforms.outcome import Outcome
from transforms.schema import records

WIKITEXT = """{{Infobox|x=1}}
[[File:a.jpg|thumb|A [[nice]] picture]]
'''Escopete''' is a [[municipality|place]] in the [[province]]<ref>quoted</ref>.

{| class="wikitable"
| cell
|}

== People ==
* one
* two &amp; three: <math>x^2</math>
[http://e.org Site] <nowiki>[[x]]</nowiki> <!-- no -->
[[Category:Places]]
[[:Category:Shown]]"""


def raw(payloads: list[bytes], media_type: str) -> pa.RecordBatch:
    batch = batch_of([str(number) for number in range(len(payloads))], schema=records())
    columns = {"payload": payloads, "content_type": [media_type] * len(payloads)}
    arrays = [
        pa.array(columns[field.name], field.type) if field.name in columns else batch.column(field.name)
        for field in batch.schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def reasons(outcome: Outcome) -> list[Any]:
    return outcome.dropped.column("reason").to_pylist()


def pdf(*lines: bytes, pages: int = 1) -> bytes:
    """Return a PDF file whose pages each have these lines as text."""
    text = b" 0 -30 Td ".join(b"(" + line + b") Tj" for line in lines)
    stream = b"BT /F1 18 Tf 10 150 Td " + text + b" ET"
    kids = b" ".join(b"%d 0 R" % (5 + n) for n in range(pages))
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 3 0 R "
        b"/Resources << /Font << /F1 4 0 R >> >> >>"
    )
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + kids + b"] /Count %d >>" % pages,
        b"<< /Length %d >>\nstream\n" % len(stream) + stream + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *[page] * pages,
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size, start = len(objects) + 1, len(out)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, start)
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer


def test_wikitext_becomes_what_a_reader_sees() -> None:
    assert plain_text(WIKITEXT) == (
        "Escopete is a place in the province.\n\nPeople\none\ntwo & three: $x^2$\nSite [[x]]\n\nCategory:Shown"
    )


def test_wikitext_records_are_kept_or_dropped_with_a_reason() -> None:
    outcome = ExtractWikitext(max_bytes=50).apply(raw([b"'''a'''", b"{{t}}", b"x" * 51], "text/x-wiki"))
    assert outcome.kept.column("text").to_pylist() == ["a"]
    assert reasons(outcome) == ["empty extraction", "too large"]
    assert reasons(ExtractWikitext().apply(raw([b"x"], "text/html"))) == ["media type"]


@pytest.mark.parametrize("wikitext", ["{{" * 5000, "[[" * 5000, "{|" * 2000, "''" * 5001, "<ref>" * 3000, "\0\x01{{{"])
def test_hostile_wikitext_ends(wikitext: str) -> None:
    assert isinstance(plain_text(wikitext), str)


def test_text_layer_becomes_text_and_its_lack_is_said() -> None:
    files = [pdf(b"Hello world", b"Second line", pages=2), pdf(b""), b"%PDF-1.4 junk"]
    outcome = ExtractPdf().apply(raw(files, "application/pdf"))
    assert outcome.kept.column("text").to_pylist() == ["Hello world\nSecond line\n\nHello world\nSecond line"]
    assert outcome.kept.column("pages").to_pylist() == [2]
    assert reasons(outcome) == ["no text layer", "parser raised"]


def test_bounds_of_pdf_files_are_counts() -> None:
    file = [pdf(b"Hello world", pages=3)]
    for bounds, reason in (
        ({"max_pages": 2}, "too many pages"),
        ({"max_characters": 20}, "too large"),
        ({"max_bytes": 99}, "too large"),
    ):
        assert reasons(ExtractPdf(**bounds).apply(raw(file, "application/pdf"))) == [reason]
    assert reasons(ExtractPdf().apply(raw(file, "text/html"))) == ["media type"]


def test_mutated_pdf_files_are_kept_or_dropped() -> None:
    good = pdf(b"Hello world", b"again")
    bad = [good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :] for at in range(9, len(good), 41)]
    outcome = ExtractPdf().apply(raw([*bad, good[: len(good) // 2]], "application/pdf"))
    assert outcome.kept.num_rows + outcome.dropped.num_rows == len(bad) + 1
