"""Bytes to text: order of evidence, labels, replacements."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.decoding import Evidence, declared_encoding, decode
from transforms.encoding_labels import CODECS, ENCODINGS

GERMAN = "Die Straße führt über den Fluß, schön für Fußgänger."
RUSSIAN = "Дорога ведёт через реку и дальше в лес, где живут медведи."
CHINESE = "这条路穿过河流，通向森林，那里住着熊和许多别的动物。"
JAPANESE = "この道は川を渡り、森へと続いています。カタカナも混じります。"
SAMPLE = Path(__file__).parents[2].parent / "shared" / "data" / "warc" / "commoncrawl-2008" / "sample.warc.gz"


@pytest.mark.parametrize(
    ("payload", "header", "encoding", "how", "text"),
    [
        (b"\xef\xbb\xbf" + GERMAN.encode(), "iso-8859-1", "utf-8", "byte order mark", GERMAN),
        (b"\xff\xfe" + GERMAN.encode("utf-16-le"), None, "utf-16le", "byte order mark", GERMAN),
        (b"\xfe\xff" + GERMAN.encode("utf-16-be"), "utf-8", "utf-16be", "byte order mark", GERMAN),
        (b"Plain words.", "shift_jis", "us-ascii", "all ascii", "Plain words."),
        (GERMAN.encode(), "iso-8859-1", "utf-8", "valid utf-8", GERMAN),
        ("ü".encode(), "iso-8859-1", "windows-1252", "http header", "Ã¼"),
        ("ü".encode(), None, "utf-8", "nearly valid utf-8", "ü"),
        (GERMAN.encode("cp1252"), "ISO-8859-1", "windows-1252", "http header", GERMAN),
        (RUSSIAN.encode("koi8-r"), "koi8-r", "koi8-r", "http header", RUSSIAN),
        (CHINESE.encode("gb18030"), "gb2312", "gbk", "http header", CHINESE),
        (JAPANESE.encode("cp932"), "x-sjis", "shift_jis", "http header", JAPANESE),
        (JAPANESE.encode("iso2022_jp"), "iso-2022-jp", "iso-2022-jp", "http header", JAPANESE),
        ("한국어 글".encode("cp949"), "ks_c_5601-1987", "euc-kr", "http header", "한국어 글"),
        (GERMAN.encode("utf-16-le"), "utf-16", "utf-16le", "http header", GERMAN),
        (GERMAN.encode("cp1252"), "no-such-charset", "windows-1252", "detector", GERMAN),
        (RUSSIAN.encode("cp1251"), None, "windows-1251", "detector", RUSSIAN),
        (CHINESE.encode("gb18030"), None, "gb18030", "detector", CHINESE),
        (GERMAN.encode("utf-16-be"), None, "utf-16be", "detector", GERMAN),
        (GERMAN.encode("utf-32-le"), None, "utf-32le", "detector", GERMAN),
        (b"\xff\xfe\0\0" + GERMAN.encode("utf-32-le"), None, "utf-32le", "byte order mark", GERMAN),
        (JAPANESE.encode("iso2022_jp"), None, "iso-2022-jp", "detector", JAPANESE),
        (b"", None, "us-ascii", "all ascii", ""),
    ],
)
def test_bytes_are_decoded_by_the_first_evidence_in_order(
    payload: bytes, header: str | None, encoding: str, how: str, text: str
) -> None:
    decoded = decode(payload, header)
    assert (decoded.encoding, decoded.how, decoded.text, decoded.replaced) == (encoding, how, text, 0)


@pytest.mark.parametrize(
    "declaration",
    [
        '<meta charset="gb2312">',
        "<META content='text/html; charset=GBK' http-equiv=Content-Type>",
        '<meta http-equiv="content-type" content="text/html; charset=gb18030"/>',
        '<?xml version="1.0" encoding="gbk"?>',
        "<!-- <meta charset=utf-8> --><meta charset = gbk >",
    ],
)
def test_declaration_in_the_page_is_used_where_the_header_is_silent(declaration: str) -> None:
    decoded = decode((declaration + CHINESE).encode("gb18030"), None)
    assert (decoded.how, decoded.text) == (Evidence.META, declaration + CHINESE)


def test_header_comes_before_the_declaration_in_the_page() -> None:
    page = ("<meta charset=koi8-r>" + RUSSIAN).encode("cp1251")
    assert decode(page, "windows-1251").text.endswith(RUSSIAN)


@pytest.mark.parametrize(
    ("text", "codec", "header", "meta", "how"),
    [
        (RUSSIAN, "cp1251", "iso-8859-1", "windows-1251", Evidence.META),
        (RUSSIAN, "cp1251", "windows-1251", "iso-8859-1", Evidence.HEADER),
        (CHINESE, "gb18030", "windows-1251", "gb2312", Evidence.META),
        (JAPANESE, "iso2022_jp", "shift_jis", "iso-2022-jp", Evidence.META),
        (GERMAN, "cp1252", "iso-8859-15", "windows-1252", Evidence.HEADER),
        ("Gr\u00fcn", "utf-8", "iso-8859-1", "utf-8", Evidence.META),
    ],
)
def test_header_is_doubted_only_where_the_word_of_the_page_is_far_more_probable(
    text: str, codec: str, header: str, meta: str, how: Evidence
) -> None:
    page = f'<meta charset="{meta}">'.encode() + (text * 2).encode(codec)
    decoded = decode(page, header)
    assert (decoded.how, decoded.text.endswith(text * 2)) == (how, True)


def test_confidence_is_whole_for_what_is_declared_and_follows_damage_and_doubt() -> None:
    assert decode(GERMAN.encode(), None).confidence == 10_000
    assert decode(GERMAN.encode("cp1252"), "iso-8859-1").confidence == 10_000
    sure = decode((RUSSIAN * 4).encode("cp1251"), None).confidence
    assert decode(b"na\xefve", None).confidence < sure <= 10_000
    damaged = decode((RUSSIAN * 3).encode() + b"\xd0!", None)
    beyond = sum(character > "\x7f" for character in damaged.text)
    assert damaged.confidence == 10_000 * (beyond - 1) // beyond


def test_declared_encoding_that_cannot_be_true_is_passed_over() -> None:
    page = ("<meta charset=gbk>" + CHINESE).encode("gb18030")
    assert decode(page, "utf-8").how is Evidence.META
    assert decode(GERMAN.encode("cp1252"), "utf-8").text == GERMAN


def test_utf8_with_one_bad_byte_stays_utf8_and_is_counted() -> None:
    page = (RUSSIAN * 3).encode() + b"\xd0!"
    for header in (None, "utf-8"):
        decoded = decode(page, header)
        assert (decoded.encoding, decoded.replaced, decoded.text) == ("utf-8", 1, RUSSIAN * 3 + "\ufffd!")


def test_replacement_characters_of_the_page_itself_are_not_counted() -> None:
    assert decode((GERMAN + "\ufffd").encode(), None).replaced == 0


@pytest.mark.parametrize("declared", ["utf-16", "UTF-16LE", "utf-16be"])
def test_utf16_declared_in_ascii_means_utf8(declared: str) -> None:
    assert declared_encoding(f'<meta charset="{declared}">'.encode()) == "utf-8"


@settings(max_examples=300)
@given(
    payload=st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.sampled_from([b"\xed\xa0\x80", b"\xff", b"\xf0\x9f", b"\x1b$B", b"~{", b"\0\xd8", b"\x84\x31\xa4\x37"])
        ).map(b"".join),
    ),
    charset=st.one_of(st.none(), st.sampled_from(sorted(ENCODINGS)), st.text(max_size=9)),
)
def test_any_bytes_become_valid_unicode(payload: bytes, charset: str | None) -> None:
    decoded = decode(payload, charset)
    decoded.text.encode("utf-8")  # raises on lone surrogates
    assert 0 <= decoded.replaced <= decoded.text.count("\ufffd")
    assert decoded.encoding in CODECS or decoded.encoding == "us-ascii"


def test_every_label_leads_to_a_codec_of_python() -> None:
    for label, encoding in ENCODINGS.items():
        assert label == label.lower()
        assert "x".encode(CODECS[encoding])
    assert ENCODINGS["iso-8859-1"] == ENCODINGS["ascii"] == "windows-1252"


def test_decode_says_that_the_payload_is_the_text_only_where_it_is() -> None:
    payloads = [b"plain", "é ü ß".encode(), "é ü ß".encode("latin-1"), b"\xef\xbb\xbfmark", b"caf\xc3\xa9 \xff"]
    for payload in payloads:
        decoded = decode(payload, None)
        assert decoded.is_payload == (decoded.text.encode() == payload)
