"""Text files, source code, pages of HTML."""

from __future__ import annotations

import lzma

import pytest
import zstandard

from curate.readers.code_languages import language_of
from curate.readers.forms import CodeForm, HtmlForm, TextForm
from tests.curate.reading import gzipped, kinds, lost, read_as, values

PACKS = {".txt": bytes, ".txt.gz": gzipped, ".txt.zst": zstandard.compress, ".txt.xz": lzma.compress}


@pytest.mark.parametrize("ending", list(PACKS))
def test_text_is_one_document_or_cut_at_a_separator(ending: str) -> None:
    data = PACKS[ending]("Erstes Stück\n\n\n\n\n\n\nzweites\n\n\n \n\n\n".encode())
    (whole,) = values(read_as("text", data, "a" + ending), "text", "encoding", "decode_confidence")
    assert whole[0].startswith("Erstes Stück\n") and whole[1:] == ("utf-8", 1)
    events = read_as("text", data, "a" + ending, TextForm("\n\n\n"))
    assert values(events, "text") == ["Erstes Stück", "zweites"] and "blank document" in kinds(events)


def test_text_that_is_cut_short_or_too_long_is_recorded() -> None:
    packed = gzipped(b"words and words and other words")
    events = read_as("text", packed[:-9], "a.txt.gz")
    assert values(events, "text") and lost(events) == ["truncated"]
    assert lost(read_as("text", b"x" * 101, max_record_bytes=100)) == ["record too large"]
    assert lost(read_as("text", b"a\n--\n" + b"x" * 101, form=TextForm("--\n"), max_record_bytes=100)) == [
        "record too large"
    ]


def test_bomb_is_damage() -> None:
    bomb = zstandard.compress(bytes(1 << 20)) * 1200  # 59 kB, 1.2 GB
    events = read_as("text", bomb, "a.txt.zst", TextForm("\n"), max_record_bytes=100)
    assert lost(events) == ["record too large", "inflates too far"]


def test_code_has_language_path_and_repository() -> None:
    events = read_as("code", b"#!/usr/bin/env python3\nprint(1)\n", "owner/repo/bin/tool", CodeForm(2))
    assert values(events, "language", "path", "repository") == [("Python", "owner/repo/bin/tool", "owner/repo")]
    assert lost(read_as("code", b"\x7fELF\0\0", "repo/a.out")) == ["binary file"]
    assert lost(read_as("code", b"ref: x", "repo/.git/HEAD")) == ["version control"]
    assert values(read_as("code", b"x", "a.c"), "repository") == [None]


@pytest.mark.parametrize(
    ("name", "content", "language"),
    [
        ("a.PY", b"", "Python"),
        ("x.rs.gz", b"", "Rust"),
        ("Makefile", b"", "Makefile"),
        ("run", b"#!/bin/bash -e\n", "Shell"),
        ("run", b"#!/usr/bin/env -S node\n", "JavaScript"),
        ("run", b"#!/usr/bin/python3.11", "Python"),
        ("data.bin", b"", None),
        ("run", b"#! " + b"/" * 300, None),
    ],
)
def test_language_is_told_by_name_or_first_line(name: str, content: bytes, language: str | None) -> None:
    assert language_of(name, content) == language


def test_page_has_the_address_of_its_folder() -> None:
    events = read_as("html", b"<p>x", "a b/c.html", HtmlForm("https://e.org/docs/"))
    assert values(events, "payload", "content_type", "url") == [
        (b"<p>x", "text/html", "https://e.org/docs/a%20b/c.html")
    ]
    assert values(read_as("html", b"<p>x", "c.html"), "url") == [None]
