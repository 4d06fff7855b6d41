"""Text of wikitext and of PDF text layers, through mwparserfromhell and pypdfium2 (extra "formats").

As `ExtractText` these make documents of raw records (schema `records()`), one outcome per record, and run isolated:
parsers from elsewhere may hang or crash. Bounds are counts. Cost: wikitext some MB/s; a page of a PDF about 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.outcome import Outcome, kept, require
from transforms.schema import BASE, EXTRA, PAYLOAD, documents

WIKITEXT: Final = "text/x-wiki"
PDF: Final = "application/pdf"

_URL: Final = pa.field("url", pa.large_string())
_PAGES: Final = pa.field("pages", pa.int64())
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_BLANKS: Final = " \t\n\r\f\v\u00a0\u3000\ufeff\ufffd"
_SMALL: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_LINE_ENDS: Final = re.compile(r"\r\n?")
_EMPTY_LINES: Final = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")
_MARKED: Final = re.compile(r"^ (?! )")  # the blank behind a mark of lists or headings, which is gone
_TABLES: Final = frozenset({"table", "ref", "gallery", "timeline", "score", "imagemap", "mapframe", "templatestyles"})
_ENCRYPTED: Final = re.compile("(?ai)password|security")
_NOT_SHOWN: Final = re.compile(r"(?ai)\s*(?:file|image|category|media)\s*:")


class _Lost(NamedTuple):
    """Why a record becomes no document."""

    reason: str
    measure: str | None = None
    numerator: int | None = None
    threshold: str | None = None
    evidence: Mapping[str, str] | None = None


def _check_library(module: str, transform: str) -> None:
    if find_spec(module) is None:
        raise ValueError(f"{transform} needs the package {module}: pip install 'curate[formats]'")


def _schema(schema: pa.Schema, transform: str, *further: pa.Field) -> pa.Schema:
    require(schema, transform, **{field.name: field.type for field in PAYLOAD})
    known = {*BASE.names, *PAYLOAD.names, EXTRA.name, *(field.name for field in further)}
    return documents(_URL, *further, *(field for field in schema if field.name not in known))


def _outcome(
    batch: pa.RecordBatch, schema: pa.Schema, transform: str, made: list[Mapping[str, Any] | _Lost]
) -> Outcome:
    """Return the outcome of a batch, given the new columns or the loss of each record."""
    rows = [row for row, each in enumerate(made) if not isinstance(each, _Lost)]
    values = [each for each in made if not isinstance(each, _Lost)]
    chosen = batch.take(pa.array(rows, pa.int64()))
    arrays = [
        pa.array([value[field.name] for value in values], field.type)
        if not values or field.name in values[0]
        else chosen.column(field.name)
        for field in schema
    ]
    if not values:
        arrays = [pa.array([], field.type) for field in schema]
    dropped = [
        {
            "id": batch.column("id")[row].as_py(),
            "transform": transform,
            **each._asdict(),
            "denominator": None if each.measure is None else 1,
            "evidence": None if each.evidence is None else canonical_json(dict(each.evidence)),
        }
        for row, each in enumerate(made)
        if isinstance(each, _Lost)
    ]
    return kept(pa.RecordBatch.from_arrays(arrays, schema=schema), dropped=dropped)


def _raised(error: Exception) -> _Lost:
    message = _ADDRESS.sub("0x…", str(error))[:200]
    return _Lost("parser raised", evidence={"type": type(error).__name__, "message": message})


def _records(batch: pa.RecordBatch) -> list[tuple[bytes, str | None]]:
    return list(zip(batch.column("payload").to_pylist(), batch.column("content_type").to_pylist(), strict=True))


@dataclass(frozen=True, slots=True)
class ExtractWikitext:
    """Make plain text of wikitext (`read_mediawiki`): templates, references, tables, files and categories go.

    Links keep what they show, headings and lists stand on lines of their own, mathematics stays LaTeX between dollars.

    Drops: `media type`, `too large`, `empty extraction`, `parser raised` (evidence: type and message).

    Attributes:
        max_bytes: longest wikitext; MediaWiki itself refuses more than 2 MiB.
    """

    max_bytes: int = 2 << 20

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("mwparserfromhell",)
    isolated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_library("mwparserfromhell", "ExtractWikitext")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the documents' schema: base columns, `url`, further ones, `extra`.

        Raises:
            SchemaError: a column of raw records is missing or has another type.
        """
        return _schema(schema, "ExtractWikitext")

    def ready(self) -> None:
        """Load the parser."""
        plain_text("'''ready'''")

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Make text of each record of `batch`."""
        made = [self._made(payload, media_type) for payload, media_type in _records(batch)]
        return _outcome(batch, self.output_schema(batch.schema), "ExtractWikitext", made)

    def _made(self, payload: bytes, media_type: str | None) -> Mapping[str, Any] | _Lost:
        if media_type != WIKITEXT:
            return _Lost("media type", evidence={"content_type": media_type or "none"})
        if len(payload) > self.max_bytes:
            return _Lost("too large", "payload bytes", len(payload), f"≤ {self.max_bytes}")
        try:
            text = plain_text(payload.decode("utf-8", "replace"))
        except MemoryError:
            raise  # says something of the machine, not of the page
        except Exception as error:
            return _raised(error)
        return {"text": text} if text.strip(_BLANKS) else _Lost("empty extraction", "visible characters", 0)


def _tag_name(tag: Any) -> str:
    return str(tag.tag).strip(_BLANKS).translate(_SMALL)


def plain_text(wikitext: str) -> str:
    """Return what a reader sees of `wikitext` but for tables, boxes and references."""
    import mwparserfromhell

    code = mwparserfromhell.parse(wikitext)
    for node in code.ifilter_tags(recursive=False, matches=lambda tag: _tag_name(tag) in _TABLES):
        code.remove(node)
    for link in code.ifilter_wikilinks(recursive=False, matches=lambda link: bool(_NOT_SHOWN.match(str(link.title)))):
        code.remove(link)
    for tag in code.filter_tags(matches=lambda tag: _tag_name(tag) == "math"):
        code.replace(tag, f"${str(tag.contents).strip(_BLANKS)}$")
    for link in code.filter_wikilinks(matches=lambda link: str(link.title).startswith(":") and not link.text):
        code.replace(link, str(link.title)[1:])
    text = str(code.strip_code(normalize=True, collapse=True, keep_template_params=False))
    lines = (_MARKED.sub("", line).rstrip(" \t") for line in _LINE_ENDS.sub("\n", text).split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip("\n ")


@dataclass(frozen=True, slots=True)
class ExtractPdf:
    """Make text of the text layer of PDF files (`read_pdf`), pages one after the other, an empty line between them.

    Nothing is recognised in pictures: a file of scans has no text layer. Column `pages`: how many the file has.

    Drops: `media type`, `too large`, `too many pages`, `no text layer` (measure: pages), `encrypted`, `parser raised`.

    Attributes:
        max_bytes: longest file.
        max_pages: most pages.
        max_characters: code points of text after which a file is too large.
    """

    max_bytes: int = 64 << 20
    max_pages: int = 10_000
    max_characters: int = 50_000_000

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("pypdfium2",)
    isolated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_library("pypdfium2", "ExtractPdf")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the documents' schema: base columns, `url`, `pages`, further ones, `extra`.

        Raises:
            SchemaError: a column of raw records is missing or has another type.
        """
        return _schema(schema, "ExtractPdf", _PAGES)

    def ready(self) -> None:
        """Load the library."""
        import pypdfium2  # noqa: F401

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Make text of each record of `batch`."""
        made = [self._made(payload, media_type) for payload, media_type in _records(batch)]
        return _outcome(batch, self.output_schema(batch.schema), "ExtractPdf", made)

    def _made(self, payload: bytes, media_type: str | None) -> Mapping[str, Any] | _Lost:
        if media_type != PDF:
            return _Lost("media type", evidence={"content_type": media_type or "none"})
        if len(payload) > self.max_bytes:
            return _Lost("too large", "payload bytes", len(payload), f"≤ {self.max_bytes}")
        import pypdfium2

        try:
            with pypdfium2.PdfDocument(payload) as document:
                return self._text(document)
        except pypdfium2.PdfiumError as error:
            encrypted = _ENCRYPTED.search(str(error)) is not None
            return _Lost("encrypted") if encrypted else _raised(error)
        except MemoryError:
            raise
        except Exception as error:
            return _raised(error)

    def _text(self, document: Any) -> Mapping[str, Any] | _Lost:
        pages, size = len(document), 0
        if pages > self.max_pages:
            return _Lost("too many pages", "pages", pages, f"≤ {self.max_pages}")
        found: list[str] = []
        for number in range(pages):
            text = _page_text(document, number)
            size += len(text)
            if size > self.max_characters:
                return _Lost("too large", "characters", size, f"≤ {self.max_characters}")
            found += [text] if text else []
        text = "\n\n".join(found)
        return {"text": text, "pages": pages} if text.strip(_BLANKS) else _Lost("no text layer", "pages", pages)


def _page_text(document: Any, number: int) -> str:
    """Return the text of a page; words that a hyphen breaks at the end of a line are joined (pdfium marks them)."""
    page = document[number]
    layer = page.get_textpage()
    try:
        text = str(layer.get_text_bounded())
    finally:
        layer.close()
        page.close()
    text = _LINE_ENDS.sub("\n", text).replace("\ufffe\n", "").replace("\ufffe", "").replace("\0", "")
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "\n".join(line.rstrip(" \t") for line in text.split("\n")).strip("\n")
