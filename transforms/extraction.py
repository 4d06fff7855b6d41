"""From the bytes of a page to its text: trafilatura or resiliparse behind one transform, bounded and deterministic.

Bytes are decoded as `transforms.decoding` says. `text/plain` is that text; HTML goes to the extractor once its markup
is within bounds (`transforms.markup`): bounds are counts, so the same pages are refused everywhere. Dates and other
metadata are never asked for: htmldate's default maximum is the day of the run. trafilatura sees pages through
`transforms.unicode_shield`, so its text does not depend on Python's version; its caches hold pure functions only, and
its deduplication, which remembers earlier documents, is off.

Extraction makes text of bytes, so it starts the count of characters and has no edits. Invariants: text is valid
Unicode; each record is kept or dropped with one reason; the outcome for a record depends on that record alone.
Cost: on one core about 13 ms (trafilatura) or 1 ms (resiliparse) for a news page of 170 kB; at the bounds, seconds.
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

from transforms.decoding import Decoded, decode
from transforms.markup import Markup, measure_markup
from transforms.optout import answers, page_signals, parse_signals, write_signals
from transforms.outcome import Outcome, canonical_json, kept, require
from transforms.page_licence import page_licence
from transforms.schema import BASE, EXTRA, NOT_CHECKED, PAYLOAD, UNKNOWN, documents
from transforms.unicode_shield import shield

HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})
"""Media types that go through the extractor; "text/plain" is only decoded."""

_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]+")
_CONTROLS: Final = bytes(point for point in range(32) if point not in (9, 10, 12, 13))
_MORE_CONTROLS: Final = re.compile("[\x80-\x84\x86-\x9f]")
_BLANKS: Final = " \t\n\r\f\v\u00a0\u3000\ufeff\ufffd"
_ENCODING: Final = pa.field("encoding", pa.large_string())
_CONFIDENCE: Final = pa.field("decode_confidence", pa.decimal128(5, 4))
_URL: Final = pa.field("url", pa.large_string())
_SIGNALS: Final = pa.field("optout_signals", pa.large_string())

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
        extractor: "trafilatura" (F1 .96 on news pages), "resiliparse" (.92, about ten times as fast), or an object that
            has a `description()` for keys and `extract(html) -> text`, as `Datatrove(…)` of an extractor.
        favour: trafilatura's focus: "precision" gives less and surer text, "recall" more.
        include: parts that are kept beside the main text, of "comments" and "tables". resiliparse keeps tables always.
        max_bytes: longest payload; trafilatura itself refuses 20 MB.
        max_elements: most start tags.
        max_depth: most elements open at once. libxml2 loses the text below 255.
        max_nesting: greatest sum over elements of the elements around them; 166,000 was the most of 1,678 real pages.
        max_undecodable: most replaced and control characters in 1,000 characters; more means that it is no text.
    """

    extractor: Literal["trafilatura", "resiliparse"] | HtmlExtractor = "trafilatura"
    favour: Literal["balanced", "precision", "recall"] = "balanced"
    include: tuple[str, ...] = ("tables",)
    max_bytes: int = 10_000_000
    max_elements: int = 100_000
    max_depth: int = 200
    max_nesting: int = 1_000_000
    max_undecodable: int = 50

    version: ClassVar[int] = 3
    libraries: ClassVar[tuple[str, ...]] = ("justext", "lxml", "lxml_html_clean", "resiliparse", "trafilatura")
    isolated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (self.extractor in _EXTRACTORS if isinstance(self.extractor, str) else _is_extractor(self.extractor)):
            names = ", ".join(_EXTRACTORS)
            raise ValueError(f"extractor={self.extractor!r}: choose one of {names}, or give an object with `extract`")
        if self.favour not in ("balanced", "precision", "recall"):
            raise ValueError(f"favour={self.favour!r}: choose balanced, precision or recall")
        if unknown := set(self.include) - {"comments", "tables"}:
            raise ValueError(f"include={self.include!r}: {sorted(unknown)} is neither comments nor tables")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the documents' schema.

        After the base columns come `encoding`, `decode_confidence` (0.0000 to 1.0000, see `Decoded`), `url`,
        `optout_signals`, further ones, `extra`.

        Raises:
            SchemaError: a column of raw records is missing or has another type.
        """
        require(schema, "ExtractText", **{field.name: field.type for field in PAYLOAD})
        known = {*BASE.names, *PAYLOAD.names, _ENCODING.name, _CONFIDENCE.name, _SIGNALS.name, EXTRA.name}
        return documents(
            _ENCODING, _CONFIDENCE, _URL, _SIGNALS, *(field for field in schema if field.name not in known)
        )

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
        text, content = decoded.text, decoded.text.encode("utf-8")
        if refusal := self._undecodable(row["id"], decoded, content):
            return refusal
        if is_html:
            markup = measure_markup(content, self.max_depth)
            bounds += self._bounds(markup)
            extracted = _refusal(row["id"], bounds) or self._extract(row["id"], text, markup)
            if not isinstance(extracted, str):
                return extracted
            text = extracted
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
        }

    def _bounds(self, markup: Markup) -> list[_Bound]:
        return [
            _Bound("too deep", "depth", markup.depth, self.max_depth),
            _Bound("too large", "elements", markup.elements, self.max_elements),
            _Bound("too large", "nesting", markup.nesting, self.max_nesting),
        ]

    def _undecodable(self, key: bytes, decoded: Decoded, content: bytes) -> Row | None:
        bad, size = decoded.replaced + len(content) - len(content.translate(None, _CONTROLS)), len(decoded.text)
        bad += 0 if len(content) == size else len(_MORE_CONTROLS.findall(decoded.text))
        if 1000 * bad <= self.max_undecodable * size:
            return None
        threshold, evidence = f"≤ {self.max_undecodable} / 1000", {"encoding": decoded.encoding}
        return _drop(key, "undecodable", "bad characters", bad, size, threshold, evidence=evidence)

    def _by_extractor(self, html: str) -> str:
        if isinstance(self.extractor, str):
            return _EXTRACTORS[self.extractor](html, self)
        return self.extractor.extract(html)

    def _extract(self, key: bytes, html: str, markup: Markup) -> str | Row:
        try:
            text = self._by_extractor(html.replace("\0", ""))
        except MemoryError:
            raise  # says something of the machine, not of the page
        except Exception as error:
            message = _ADDRESS.sub("0x…", str(error))[:200]
            return _drop(key, "extractor raised", evidence={"type": type(error).__name__, "message": message})
        text = _valid(text)
        return text if text.strip(_BLANKS) else _drop(key, "empty extraction", "visible characters", markup.visible)


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
    """Import trafilatura and silence its log, which tells of pages what the ledger tells."""
    import trafilatura

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
_WRITTEN: Final = ("text", "encoding", "decode_confidence", "licence", "licence_basis", "optout", "optout_signals")
_READ: Final = ["id", "licence", "licence_basis", "optout", *PAYLOAD.names]
