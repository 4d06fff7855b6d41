"""Datasets read from files, for recipes: one function for each format.

All take the same further arguments, `ReadOptions`. Building a dataset reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from curate.configuration import ConfigurationError
from curate.readers.forms import (
    PAGES,
    CodeForm,
    CsvForm,
    FileForm,
    Form,
    HtmlForm,
    TarForm,
    TextForm,
    WarcForm,
    WatForm,
    WikiForm,
)
from curate.readers.reader import FURTHER, Column, Reader, declared_columns, source_root
from curate.recipes.graph import Dataset, Read
from curate.store import Store
from transforms.schema import BASE, EXTRA

Root = str | Path | Store
Columns = Mapping[str, str | Column] | None


class ReadOptions(TypedDict, total=False):
    """What every reader takes.

    Attributes:
        licence: SPDX id asserted for the whole source; unless given, none is.
        excerpts: False forbids showing this source's texts in samples and pages.
        on_clash: "error", or "place" to tell apart different records that share a key or a WARC-Record-ID.
        max_record_bytes: longer records, files, payloads when they are decoded, or rows by their strings and binary
            values, are dropped as "record too large". What a task needs of memory follows from it
            (`DocumentJob.resources`).
        max_damaged: largest share of the source's bytes or rows that may lie in gaps, 0.5 unless given; more stops the
            run.
        listing: file that pins the files by size and checksum, as `curate list` writes it: nothing is hashed before the
            run, and a file that is not the listed one is an error.
        unit_bytes: files larger than this are read in several units at once where the format allows: Parquet by row
            groups, plain lines by lines, archives record by record. How records are called does not depend on it.
    """

    licence: str | None
    excerpts: bool
    on_clash: str
    max_record_bytes: int
    max_damaged: float
    listing: str | Path | None
    unit_bytes: int


def reading(
    kind: str,
    root: Root,
    pattern: str,
    source: str,
    options: ReadOptions,
    form: Form | None = None,
    columns: tuple[tuple[str, Column], ...] = (),
    ignore: Sequence[str] = (),
) -> Dataset:
    """Return the dataset that a reader of the format `kind` makes."""
    given: dict[str, Any] = dict(options)
    if "max_damaged" in given:
        given["max_damaged"] = str(given["max_damaged"])
    if (listing := given.get("listing")) is not None:
        given["listing"] = Path(listing)
    reader = Reader(kind, source_root(root), pattern, source, columns, tuple(ignore), form=form, **given)
    return Dataset(Read(reader), f"read {source}")


def read_warc(
    root: Root,
    pattern: str = "**/*.warc.gz",
    *,
    source: str,
    statuses: Sequence[int] | None = (200,),
    revisits: str = "count",
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read web archives (WARC, ARC; plain, .gz, .lz4, .zst): a record a response, not yet text (apply `ExtractText`).

    Ids come from WARC-Record-ID; of ARC, which has none, from the place. Damage, other record types and other statuses
    than 200 are recorded, none is silent.

    Args:
        root: folder of the source, a URL, or a `Store` with options; paths below it name its files.
        pattern: which files, as `pathlib.Path.glob` understands it.
        source: name of the source; part of every id.
        statuses: HTTP status codes that become records; None takes any. Others are dropped as "http status".
        revisits: "count" records that say that the same bytes came again, or "resolve" them: each becomes a record with
            the bytes of the one that it refers to, where that stands earlier in the same file, else it is dropped.
        **options: `ReadOptions`.
    """
    form = WarcForm(None if statuses is None else tuple(statuses), revisits)
    return reading("warc", root, pattern, source, options, None if form == PAGES else form)


def read_jsonl(
    root: Root,
    pattern: str = "**/*.jsonl*",
    *,
    source: str,
    columns: Columns = None,
    ignore: Sequence[str] = (),
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read JSON lines (plain, .gz, .zst, .bz2, .xz, .lz4) below `root`; arguments as in `read_parquet`."""
    return reading("jsonl", root, pattern, source, options, None, declared_columns(columns, "text"), ignore)


def read_parquet(
    root: Root,
    pattern: str = "**/*.parquet",
    *,
    source: str,
    columns: Columns = None,
    ignore: Sequence[str] = (),
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read Parquet files below `root`.

    Args:
        root: as in `read_warc`, as `pattern` and `source` are.
        pattern: which files.
        source: name of the source.
        columns: our name → input column, as {"text": "content", "key": "blob_id", "stars": Column("stars", "int64")}.
            "key" names each record (without it its place does); "licence" and "crawled_at" fill the rights columns.
        ignore: input columns to leave out; all others that are not declared survive as JSON in `extra`.
        **options: `ReadOptions`.
    """
    return reading("parquet", root, pattern, source, options, None, declared_columns(columns, "text"), ignore)


def read_files(root: Root, pattern: str = "**/*.txt", *, source: str, **options: Unpack[ReadOptions]) -> Dataset:
    """Read text and source files below `root`, each one document; arguments as in `read_warc`.

    The columns `encoding` and `decode_confidence` say how bytes were read.
    """
    return reading("files", root, pattern, source, options)


def read_wet(root: Root, pattern: str = "**/*.wet*", *, source: str, **options: Unpack[ReadOptions]) -> Dataset:
    """Read WET archives: the text that Common Crawl made of its pages, with `url` and `identified_languages`.

    Ids come from WARC-Record-ID. Further arguments: `ReadOptions`.
    """
    return reading("wet", root, pattern, source, options)


def read_wat(
    root: Root,
    pattern: str = "**/*.wat*",
    *,
    source: str,
    columns: Mapping[str, str] | None = None,
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read WAT archives: metadata of responses, to be joined to the documents of the WARC files that they describe.

    A row has the id of the response: `read_warc(…, source="web").apply(ExtractText()).join(read_wat(…, source="web"),
    ["title"])`. Its text is the title.

    Args:
        root: as in `read_warc`, as `pattern` and `source` are; give the source of the WARC files.
        pattern: which files.
        source: name of the source.
        columns: our name → path in the record's "Envelope", "/" between parts; None: `title`, `metas` and `links`.
            What is no string becomes canonical JSON.
        **options: `ReadOptions`.
    """
    form = WatForm() if columns is None else WatForm(tuple(columns.items()))
    _check_names([name for name, _ in form.columns])
    return reading("wat", root, pattern, source, options, form)


def read_csv(
    root: Root,
    pattern: str = "**/*.csv*",
    *,
    source: str,
    columns: Columns = None,
    ignore: Sequence[str] = (),
    delimiter: str | None = None,
    quote: str | None = '"',
    escape: str | None = None,
    header: Sequence[str] | None = None,
    encoding: str = "utf-8",
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read separated values (plain, .gz, .zst, .bz2, .xz, .lz4); fields in quotes may span lines.

    A row of another number of fields than the header, or with a quote that does not end, is dropped as "bad row".

    Args:
        root: as in `read_warc`, as `pattern` and `source` are.
        pattern: which files.
        source: name of the source.
        columns: our name → input column, as in `read_parquet`; values of columns that are declared "int64", "bool" or
            "timestamp" are read as such, the others are strings.
        ignore: input columns to leave out; all others that are not declared survive as JSON in `extra`.
        delimiter: between fields; None: a tab in .tsv and .tab files, else a comma.
        quote: around fields that hold delimiters, line breaks or (doubled) quotes; None: nothing is quoted.
        escape: makes the character behind it plain; None: there is none.
        header: names of the columns; None: the first record of each file has them.
        encoding: of the files, one that keeps ASCII.
        **options: `ReadOptions`.
    """
    form = CsvForm(delimiter, quote, escape, None if header is None else tuple(header), encoding)
    return reading("csv", root, pattern, source, options, form, declared_columns(columns, "text"), ignore)


def read_text(
    root: Root,
    pattern: str = "**/*.txt*",
    *,
    source: str,
    separator: str | None = None,
    **options: Unpack[ReadOptions],
) -> Dataset:
    r"""Read text files (plain, .gz, .zst, .bz2, .xz, .lz4), each one document, or cut at `separator`, as "\n\n\n".

    The columns `encoding` and `decode_confidence` say how bytes were read. Further arguments: `ReadOptions`.
    """
    return reading("text", root, pattern, source, options, TextForm(separator))


def read_code(
    root: Root,
    pattern: str = "**/*",
    *,
    source: str,
    repository_parts: int = 1,
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read source files, each one document, with `path`, `language` (by name, ending or first line) and `repository`.

    The repository is the first `repository_parts` folders of the path: 2 for owner/name. Binary files, and what lies in
    folders of version control, are dropped. Further arguments: `ReadOptions`.
    """
    return reading("code", root, pattern, source, options, CodeForm(repository_parts))


def read_html(
    root: Root,
    pattern: str = "**/*.htm*",
    *,
    source: str,
    url: str | None = None,
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read a folder of pages, not yet text: apply `ExtractText`. `url` is the address of the folder, if it has one."""
    return reading("html", root, pattern, source, options, HtmlForm(url))


def read_mediawiki(
    root: Root,
    pattern: str = "**/*.xml*",
    *,
    source: str,
    namespaces: Sequence[int] | None = (0,),
    redirects: str = "refuse",
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read MediaWiki XML dumps, not yet text: apply `ExtractWikitext`.

    Columns: `title`, `redirect` (where it leads), `revised` (time of the revision), `page` (number), `namespace`,
    `url`.

    Args:
        root: as in `read_warc`, as `pattern` and `source` are.
        pattern: which files.
        source: name of the source.
        namespaces: numbers of the namespaces to read; None reads all.
        redirects: "refuse" or "keep" pages that only lead elsewhere.
        **options: `ReadOptions`.
    """
    form = WikiForm(None if namespaces is None else tuple(namespaces), redirects)
    return reading("mediawiki", root, pattern, source, options, form)


def read_epub(root: Root, pattern: str = "**/*.epub", *, source: str, **options: Unpack[ReadOptions]) -> Dataset:
    """Read EPUB books, a record for each chapter, not yet text: apply `ExtractText`.

    Columns: `book` (title), `path`, `chapter` (number in reading order). `.group("book", "chapter")` then makes one
    document of each book. Further arguments: `ReadOptions`.
    """
    return reading("epub", root, pattern, source, options)


def read_pdf(root: Root, pattern: str = "**/*.pdf", *, source: str, **options: Unpack[ReadOptions]) -> Dataset:
    """Read PDF files, not yet text: apply `ExtractPdf`. Further arguments: `ReadOptions`."""
    return reading("pdf", root, pattern, source, options)


def read_tar(
    root: Root,
    pattern: str = "**/*.tar*",
    *,
    source: str,
    kind: str,
    members: str = "**/*",
    form: FileForm | None = None,
    columns: Columns = None,
    ignore: Sequence[str] = (),
    **options: Unpack[ReadOptions],
) -> Dataset:
    """Read tar archives (plain, .gz, .zst, .bz2, .xz, .lz4): members are streamed, and none is written to disk.

    The column `member` has the name of the member; what leads out of a folder is taken out of it.

    Args:
        root: as in `read_warc`, as `pattern` and `source` are.
        pattern: which archives.
        source: name of the source.
        kind: format of the members: "text", "code", "html", "jsonl", "csv", "warc", "wet", "wat", "mediawiki", "epub"
            or "pdf".
        members: which members, a pattern as for files; others are counted.
        form: what else the format needs to know, as `CsvForm(delimiter=";")` of `curate.readers.forms`; None: nothing.
        columns: of "jsonl" and "csv", as in `read_parquet`.
        ignore: as in `read_parquet`.
        **options: `ReadOptions`.
    """
    pairs = declared_columns(columns, "text") if kind in ("jsonl", "csv") else ()
    return reading("tar", root, pattern, source, options, TarForm(kind, members, form), pairs, ignore)


def _check_names(names: Sequence[str]) -> None:
    made = {*FURTHER["wat"], *BASE.names, EXTRA.name}
    if (clash := made & set(names)) or len(set(names)) < len(names):
        raise ConfigurationError(f"read_wat(columns={sorted(names)}): {sorted(clash)} are made by it; each name once")
