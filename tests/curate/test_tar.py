"""Tar archives: members read where they stand, hostile names, damage."""

from __future__ import annotations

import io
import lzma
import random
import tarfile

import pytest
import zstandard

from curate.readers.events import Gap, Read
from curate.readers.forms import CsvForm, TarForm
from tests.curate.reading import gzipped, kinds, lost, mutated, read_as, values
from tests.curate.test_warc import page

PACKS = {".tar": bytes, ".tar.gz": gzipped, ".tgz": gzipped, ".tar.zst": zstandard.compress, ".tar.xz": lzma.compress}
LINES = b'{"text":"a"}\n{"text":"b"}\nnope\n'
TYPES = {"ln": tarfile.SYMTYPE, "dir": tarfile.DIRTYPE, "null": tarfile.CHRTYPE}


def tar(files: dict[str, bytes], layout: int = tarfile.PAX_FORMAT) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=layout) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, kind in TYPES.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd" if kind == tarfile.SYMTYPE else ""
            archive.addfile(info)
    return held.getvalue()


@pytest.mark.parametrize("layout", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_members_are_read_under_names_that_lead_nowhere(layout: int) -> None:
    long = "ü/" + "b" * 90 + "/c.txt"
    data = tar({"../../etc/x.txt": b"one", "/abs.txt": b"two", long: b"y" * 600, "z.bin": b"q"}, layout)
    events = read_as("tar", data, "a.tar", TarForm("text", "**/*.txt"))
    assert values(events, "member", "text") == [("etc/x.txt", "one"), ("abs.txt", "two"), (long, "y" * 600)]
    assert {"tar link", "tar folder", "tar special", "other member", "tar padding"} <= set(kinds(events))


@pytest.mark.parametrize("ending", list(PACKS))
def test_lines_of_members_stand_at_their_place_in_the_archive(ending: str) -> None:
    data = tar({"x.jsonl": LINES, "y.jsonl": LINES})
    events = read_as("tar", PACKS[ending](data), "a" + ending, TarForm("jsonl"))
    reads = [event for event in events if isinstance(event, Read)]
    assert [data[e.offset : e.offset + e.length] for e in reads] == [b'{"text":"a"}\n', b'{"text":"b"}\n'] * 2
    assert [e.values["member"] for e in reads] == ["x.jsonl"] * 2 + ["y.jsonl"] * 2
    assert lost(events) == ["not JSON"] * 2


def test_documents_of_a_compressed_member_are_its_parts() -> None:
    events = read_as("tar", tar({"y.jsonl.gz": gzipped(LINES)}), "a.tar", TarForm("jsonl", "**/*.jsonl.gz"))
    assert [(e.part, e.values["text"]) for e in events if isinstance(e, Read)] == [(1, "a"), (2, "b")]
    assert [(e.length, e.reason) for e in events if isinstance(e, Gap)] == [(0, "not JSON")]


def test_archives_and_tables_in_a_tar_are_read_in_their_format() -> None:
    warc = b"".join(gzipped(page(number)) for number in range(3))
    assert len(values(read_as("tar", tar({"w.warc.gz": warc}), "a.tar", TarForm("warc")), "url")) == 3
    table = tar({"t.csv": b"text;n\nx;1\n"})
    assert values(read_as("tar", table, "a.tar", TarForm("csv", form=CsvForm(";"))), "text") == ["x"]
    code = read_as("tar", tar({"repo-1/a.py": b"x = 1"}), "a.tar", TarForm("code"))
    assert values(code, "repository", "language", "member") == [("repo-1", "Python", "repo-1/a.py")]


def test_damaged_header_costs_its_member_and_a_cut_member_is_no_document() -> None:
    data = bytearray(tar({"a.txt": b"one", "b.txt": b"two", "c.txt": b"three" * 300}))
    data[1024 + 20] ^= 1
    events = read_as("tar", bytes(data[: 3 * 1024 - 512 + 700]), "a.tar", TarForm("text"))
    assert values(events, "text") == ["one"] and lost(events) == ["bad tar header", "truncated tar member"]
    assert lost(read_as("tar", tar({"a.txt": b"x" * 500}), "a.tar", TarForm("text"), max_record_bytes=99)) == [
        "record too large"
    ]


@pytest.mark.parametrize("kind", ["text", "jsonl", "warc"])
def test_mutated_archives_end_in_events_of_all_bytes(kind: str) -> None:
    chance = random.Random(kind)
    data = tar({"a.jsonl": LINES, "b.gz": gzipped(LINES), "w.warc.gz": gzipped(page(1))})
    for _ in range(150):
        read_as("tar", mutated(data, chance), "a.tar", TarForm(kind))
