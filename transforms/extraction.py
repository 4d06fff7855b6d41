"""From the bytes of a page to its text: our block engine, trafilatura or resiliparse, bounded and deterministic.

Bytes are decoded as `transforms.decoding` says. `text/plain` is that text; HTML goes to the extractor once its markup
is within bounds: bounds are counts, so the same pages are refused everywhere. The block engine (`transforms.pages`)
counts for itself and needs no bound on depth; for the others, `transforms.markup` counts first. What a page says of
itself becomes columns where the block engine reads it; trafilatura is never asked: htmldate's default maximum is the
day of the run. trafilatura sees pages through `transforms.unicode_shield`, so its text does not depend on Python's
version; its caches hold pure functions only, and its deduplication, which remembers earlier documents, is off.

Extraction makes text of bytes, so it starts the count of characters and has no edits. Invariants: text is valid
Unicode; each record is kept or dropped with one reason; the outcome for a record depends on that record alone.
Cost: on one core about 2 ms (blocks), 13 ms (trafilatura) or 1 ms (resiliparse) for a news page of 170 kB; at the
bounds, seconds.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, ClassVar, Final, Literal, Protocol

import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.decoding import Decoded, decode
from transforms.element_classes import element_classes
from transforms.markup import Markup, measure_markup
from transforms.optout import answers, page_signals, parse_signals, write_signals
from transforms.outcome import Outcome, kept, require
from transforms.page_licence import page_licence
from transforms.pages.engine import DEFAULT_MARKS, Extracted, extract
from transforms.pages.writing import MARKS
from transforms.schema import (
    BASE,
    DECODE_CONFIDENCE,
    ENCODING,
    EXTRA,
    NOT_CHECKED,
    PAYLOAD,
    SHARE,
    UNKNOWN,
    documents,
)
from transforms.unicode_shield import shield

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
"""Media types that go through the extractor; "text/plain" is only decoded."""

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_CONTROLS: Final = bytes(point for point in range(32) if point not in (9, 10, 12, 13))
_MORE_CONTROLS: Final = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")  # U+0080 to U+009F without U+0085
_BLANKS: Final = " \t\n\r\f\v\u00a0\u3000\ufeff\ufffd"
_UNSEEN: Final = bytes([*range(33), *range(0x80, 0xC0)])  # blanks, controls, all but the first byte of a character
_URL: Final = pa.field("url", pa.large_string())
_SIGNALS: Final = pa.field("optout_signals", pa.large_string())
_SAID: Final = (
    pa.field("title", pa.large_string()),
    pa.field("author", pa.large_string()),
    pa.field("published", pa.large_string()),
    pa.field("language_hint", pa.large_string()),
    pa.field("canonical_url", pa.large_string()),
    pa.field("page_type", pa.large_string()),
    pa.field("extraction_confidence", SHARE),
    pa.field("extracted_ratio", SHARE),
)
"""What the block engine reads of a page beside its text: null for what a page does not say, and for other extractors
(but `extracted_ratio`: characters of the text per visible character of the page)."""

Row = dict[str, Any]


class HtmlExtractor(Protocol):
    """An extractor from elsewhere: what it makes of a page must depend on that page alone."""

    def description(self) -> dict[str, Any]:
        """Return what names its behaviour in keys, as canonical JSON values."""
        ...

    def extract(self, html: str) -> str:
        """Return the main text of a page; empty: there is none. What it raises is recorded for the page."""
        ...


@dataclass(frozen=True, slots=True)
class ExtractText:
    """Make documents of raw records (schema `records()`): decode, extract the main text, read licence and opt-outs.

    Drops, each with measure and bound where there is one: `media type`, `too large` (bytes, elements or nesting),
    `too deep`, `undecodable`, `empty extraction` (measure: visible characters of the page), `extractor raised`
    (evidence: type and message). Where the source says nothing of a licence, one that the page declares for itself is
    taken, with basis "page". What header and page say of their use in training goes into `optout` and `optout_signals`
    (`transforms.optout`).

    Attributes:
        extractor: "blocks" (ours, docs/extraction.md), "trafilatura", "resiliparse", or an object that has a
            `description()` for keys and `extract(html) -> text`, as `Datatrove(…)` of an extractor.
        output: "text", or "markdown" by the block engine.
        marks: what Markdown marks, of "headings", "lists", "tables", "code" and "links".
        favour: trafilatura's focus: "precision" gives less and surer text, "recall" more.
        include: parts that trafilatura keeps beside the main text, of "comments" and "tables"; resiliparse keeps tables
            always. The block engine decides by itself: comments are main text in a forum, none below an article.
        max_bytes: longest payload; trafilatura itself refuses 20 MB.
        max_elements: most start tags.
        max_depth: most elements open at once, for all but the block engine. libxml2 loses the text below 255.
        max_nesting: greatest sum over elements of the elements around them, for all but the block engine; 166,000 was
            the most of 1,678 real pages.
        max_undecodable: most replaced and control characters in 1,000 characters; more means that it is no text.
    """

    extractor: Literal["blocks", "trafilatura", "resiliparse"] | HtmlExtractor = "blocks"
    output: Literal["text", "markdown"] = "text"
    marks: tuple[str, ...] = DEFAULT_MARKS
    favour: Literal["balanced", "precision", "recall"] = "balanced"
    include: tuple[str, ...] = ("tables",)
    max_bytes: int = 10_000_000
    max_elements: int = 100_000
    max_depth: int = 200
    max_nesting: int = 1_000_000
    max_undecodable: int = 50

    version: ClassVar[int] = 5
    libraries: ClassVar[tuple[str, ...]] = ("justext", "lxml", "lxml_html_clean", "resiliparse", "trafilatura")
    isolated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        names = ("blocks", *_EXTRACTORS)
        if not (self.extractor in names if isinstance(self.extractor, str) else _is_extractor(self.extractor)):
            raise ValueError(
                f"extractor={self.extractor!r}: choose one of {', '.join(names)}, or give an object with `extract`"
            )
        if self.output not in ("text", "markdown") or (self.output == "markdown" and self.extractor != "blocks"):
            raise ValueError(f"output={self.output!r}: choose text, or markdown with extractor='blocks'")
        if unknown := set(self.marks) - set(MARKS):
            raise ValueError(f"marks={self.marks!r}: {sorted(unknown)} is none of {', '.join(MARKS)}")
        if self.favour not in ("balanced", "precision", "recall"):
            raise ValueError(f"favour={self.favour!r}: choose balanced, precision or recall")
        if self.favour != "balanced" and self.extractor != "trafilatura":
            raise ValueError(f"favour={self.favour!r}: only extractor='trafilatura' has a focus")
        if unknown := set(self.include) - {"comments", "tables"}:
            raise ValueError(f"include={self.include!r}: {sorted(unknown)} is neither comments nor tables")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the documents' schema.

        After the base columns come `encoding`, `decode_confidence` (0.0000 to 1.0000, see `Decoded`), `url`,
        `optout_signals`, what the page says of itself (`title` … `extracted_ratio`), further ones, `extra`.

        Raises:
            SchemaError: a column of raw records is missing or has another type.
        """
        require(schema, "ExtractText", **{field.name: field.type for field in PAYLOAD})
        ours = (ENCODING, DECODE_CONFIDENCE, _URL, _SIGNALS, *_SAID)
        known = {*BASE.names, *PAYLOAD.names, *(field.name for field in ours), EXTRA.name}
        return documents(*ours, *(field for field in schema if field.name not in known))

    def ready(self) -> None:
        """Extract a small page: loading the extractor and the kernels takes longer than most pages do."""
        page = {"payload": b"<p>ready</p>", "content_type": "text/html", "licence": UNKNOWN, "licence_basis": UNKNOWN}
        self._document({**dict.fromkeys(_READ), **page, "optout": NOT_CHECKED}, [])

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Extract each record of `batch`."""
        rows: list[int] = []
        columns: dict[str, list[object]] = {name: [] for name in _WRITTEN}
        dropped: list[Row] = []
        near: list[Row] = []
        for index, row in enumerate(batch.select(_READ).to_pylist()):
            outcome = self._document(row, near)
            if "reason" in outcome:
                dropped.append(outcome)
                continue
            rows.append(index)
            for name, values in columns.items():
                values.append(outcome[name])
        schema = self.output_schema(batch.schema)
        chosen = batch.take(pa.array(rows, pa.int64()))
        arrays = [
            pa.array(columns[field.name], field.type) if field.name in columns else chosen.column(field.name)
            for field in schema
        ]
        return kept(pa.RecordBatch.from_arrays(arrays, schema=schema), dropped=dropped, near=near)

    def _document(self, row: Row, near: list[Row]) -> Row:
        """Return the new columns of a record, or the row of its drop."""
        payload, media_type = row["payload"], row["content_type"] or "text/html"
        is_html = media_type in HTML_TYPES
        if not is_html and media_type != "text/plain":
            return _drop(row["id"], "media type", evidence={"content_type": media_type})
        bounds = [_Bound("too large", "payload bytes", len(payload), self.max_bytes)]
        if refusal := _refusal(row["id"], bounds):
            return refusal
        decoded = decode(payload, row["http_charset"])
        text = decoded.text
        content = payload if decoded.is_payload else text.encode("utf-8")
        if refusal := self._undecodable(row["id"], decoded, content):
            return refusal
        said: Row = dict.fromkeys(field.name for field in _SAID)
        if is_html:
            found = self._read(row["id"], text, content, bounds)
            if "reason" in found:
                return found
            text, said = found.pop("text"), {**said, **found}
        elif not text.strip(_BLANKS):
            return _drop(row["id"], "empty extraction", "visible characters", 0)
        near.extend(bound.row(row["id"]) for bound in bounds if bound.is_near())
        licence = page_licence(payload) if is_html and row["licence"] == UNKNOWN else None
        return {
            **_optout(row, page_signals(decoded.text) if is_html else None, media_type),
            "text": text,
            "encoding": decoded.encoding,
            "decode_confidence": Decimal(decoded.confidence).scaleb(-4),
            "licence": licence or row["licence"],
            "licence_basis": "page" if licence else row["licence_basis"],
            **said,
        }

    def _read(self, key: bytes, html: str, content: bytes, bounds: list[_Bound]) -> Row:
        """Return the text of a page with what it says of itself, or the row of its drop; add the bounds asked."""
        if self.extractor == "blocks":
            extracted = extract(content, output=self.output, marks=self.marks)
            bounds.append(_Bound("too large", "elements", extracted.elements, self.max_elements))
            visible, text = extracted.visible, extracted.text
            found: Row = _said(extracted)
            if refusal := _refusal(key, bounds):
                return refusal
        else:
            markup = measure_markup(content, self.max_depth)
            bounds += self._bounds(markup)
            made = _refusal(key, bounds) or self._extract(key, html)
            if not isinstance(made, str):
                return made
            visible, text = markup.visible, made
            found = {"extracted_ratio": _ratio(len(text.encode().translate(None, _UNSEEN)), visible)}
        if not text.strip(_BLANKS):
            return _drop(key, "empty extraction", "visible characters", visible)
        return {"text": text, **found}

    def _bounds(self, markup: Markup) -> list[_Bound]:
        return [
            _Bound("too deep", "depth", markup.depth, self.max_depth),
            _Bound("too large", "elements", markup.elements, self.max_elements),
            _Bound("too large", "nesting", markup.nesting, self.max_nesting),
        ]

    def _undecodable(self, key: bytes, decoded: Decoded, content: bytes) -> Row | None:
        bad, size = decoded.replaced + len(content) - len(content.translate(None, _CONTROLS)), len(decoded.text)
        bad += 0 if len(content) == size else len(_MORE_CONTROLS.findall(content))
        if 1000 * bad <= self.max_undecodable * size:
            return None
        threshold, evidence = f"≤ {self.max_undecodable} / 1000", {"encoding": decoded.encoding}
        return _drop(key, "undecodable", "bad characters", bad, size, threshold, evidence=evidence)

    def _by_extractor(self, html: str) -> str:
        if isinstance(self.extractor, str):
            return _EXTRACTORS[self.extractor](html, self)
        return self.extractor.extract(html)

    def _extract(self, key: bytes, html: str) -> str | Row:
        try:
            text = self._by_extractor(html.replace("\0", ""))
        except MemoryError:
            raise  # says something of the machine, not of the page
        except Exception as error:
            message = _ADDRESS.sub("0x…", str(error))[:200]
            return _drop(key, "extractor raised", evidence={"type": type(error).__name__, "message": message})
        return _valid(text)


def _ratio(part: int, whole: int) -> Decimal:
    """Return part / whole, at most 1, four decimals, rounded down."""
    return Decimal(min(10_000, 10_000 * part // max(1, whole))).scaleb(-4)


def _said(extracted: Extracted) -> Row:
    """Return the columns of what the block engine found."""
    facts = extracted.facts
    return {
        "title": facts.title,
        "author": facts.author,
        "published": facts.date,
        "language_hint": facts.language,
        "canonical_url": facts.url,
        "page_type": facts.kind,
        "extraction_confidence": Decimal(extracted.confidence).scaleb(-4),
        "extracted_ratio": _ratio(extracted.kept, extracted.visible),
    }


def _optout(row: Row, page: tuple[str, ...] | None, media_type: str) -> Row:
    """Return the columns of opt-out: answers, and all signals; null where there was nowhere to look for any."""
    header = None if row["optout_headers"] is None else parse_signals(row["optout_headers"])
    looked = header is not None or page is not None
    signals = write_signals([*(header or ()), *(page or ())]) if looked else None
    return {"optout": {**row["optout"], **answers(header, page, media_type)}, "optout_signals": signals}


@dataclass(frozen=True, slots=True)
class _Bound:
    reason: str
    measure: str
    value: int
    bound: int

    def is_near(self) -> bool:
        return 20 * self.value >= 19 * self.bound

    def row(self, key: bytes) -> Row:
        return _drop(key, self.reason, self.measure, self.value, 1, f"≤ {self.bound}")


def _refusal(key: bytes, bounds: list[_Bound]) -> Row | None:
    return next((bound.row(key) for bound in bounds if bound.value > bound.bound), None)


def _drop(
    key: bytes,
    reason: str,
    measure: str | None = None,
    numerator: int | None = None,
    denominator: int | None = 1,
    threshold: str | None = None,
    *,
    evidence: Mapping[str, str] | None = None,
) -> Row:
    return {
        "id": key,
        "transform": "ExtractText",
        "reason": reason,
        "measure": measure,
        "numerator": numerator,
        "denominator": None if measure is None else denominator,
        "threshold": threshold,
        "evidence": None if evidence is None else canonical_json(dict(evidence)),
    }


def _is_extractor(value: object) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("description", "extract"))


def _valid(text: str) -> str:
    """Return `text` with lone surrogates replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class _Extractor(Protocol):
    def __call__(self, html: str, settings: ExtractText, /) -> str: ...


@cache
def _quiet_trafilatura() -> Any:
    """Import trafilatura, silence its log, which tells of pages what the ledger tells, and spare it calls of Python."""
    import trafilatura
    from trafilatura.utils import HTML_PARSER

    HTML_PARSER.set_element_class_lookup(element_classes())
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)
    return trafilatura


def _by_trafilatura(html: str, settings: ExtractText) -> str:
    shielded, unshield = shield(html)
    text = _quiet_trafilatura().extract(
        shielded,
        output_format="txt",
        favor_precision=settings.favour == "precision",
        favor_recall=settings.favour == "recall",
        include_comments="comments" in settings.include,
        include_tables="tables" in settings.include,
        deduplicate=False,
        with_metadata=False,
    )
    return (text or "").translate(unshield) if unshield else text or ""


def _by_resiliparse(html: str, settings: ExtractText) -> str:
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(html, main_content=True, alt_texts=False, comments="comments" in settings.include))


_EXTRACTORS: Final[dict[str, _Extractor]] = {"trafilatura": _by_trafilatura, "resiliparse": _by_resiliparse}
_WRITTEN: Final = (
    *("text", "encoding", "decode_confidence", "licence", "licence_basis", "optout", "optout_signals"),
    *(field.name for field in _SAID),
)
_READ: Final = ["id", "licence", "licence_basis", "optout", *PAYLOAD.names]
