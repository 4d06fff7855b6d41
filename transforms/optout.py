"""What a page says of its use for text and data mining: robots directives and the TDM reservation, read and respected.

Two places are read where a record carries them: the HTTP header (`X-Robots-Tag`, `tdm-reservation`, `tdm-policy`) and
the page's `<meta>` elements before its body (`robots`, names of crawlers, `tdm-reservation`, `tdm-policy`). What is
found is kept as it is, in the column `optout_signals`:

    ["meta robots: noai", "x-robots-tag: noindex", "x-robots-tag gptbot: noindex", "tdm-reservation meta: 1"]

and decides two answers of the column `optout`:

- `robots_meta` is "yes" where `COUNTED` directives (noai, noml) are addressed to all robots. Not counted, as they say
  something else: noimageai (images), noindex, none, noarchive, nocache, nosnippet (search engines), and whatever is
  addressed to one crawler by name. `RespectOptOut(also=("noindex",))` counts more.
- `tdm` is "yes" for a reservation of 1, "no" for 0 or none. A valid value in the page goes before one in the header, an
  invalid one counts as none (TDM Reservation Protocol, W3C Community Group Report, sections "Processing priority" and
  "Protocol errors"). The file /.well-known/tdmrep.json belongs to a site, not to a record, and is not looked at.

An answer is "no" only where both places were looked at: a record without an HTTP header whose page says nothing stays
"not checked", as does everything of text that was extracted by others (WET). `robots_txt` is never looked at.

Sources: noai and noimageai are DeviantArt's (2022), noml is Mojeek's; X-Robots-Tag is Google's ("agent: directives").
Invariants: linear in the page; at most `MOST_SIGNALS` signals of the first `HEAD` code points before the body, in at
most `MOST_METAS` elements of `LONGEST_META` code points. Cost: some 90 µs per page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np
import pyarrow as pa

from transforms.canonical import canonical_json
from transforms.outcome import Outcome, kept, require
from transforms.schema import NOT_CHECKED, OPTOUT

COUNTED: Final = ("noai", "noml")
"""Directives that keep a text out of training."""

RECORDED: Final = (*COUNTED, "noimageai", "noindex", "none", "noarchive", "nocache", "nosnippet")
"""Directives that are kept as signals."""

MOST_SIGNALS: Final = 32
MOST_METAS: Final = 1_000
LONGEST_META: Final = 4_000
HEAD: Final = 1 << 20

_VALUED: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_NAME: Final = re.compile(r"[a-z0-9_.*-]{1,40}")
_CRAWLER: Final = re.compile(r"(?:[a-z0-9_.-]{0,40}(?:bot|spider|crawler|-ai)|google-extended)")
_MAY_SAY: Final = re.compile(r"bot|spider|crawler|-ai|google-extended|tdm-", re.ASCII | re.IGNORECASE)
"""What stands in every meta element that says something: most have none of it, and are not read further."""

_NEXT: Final = re.compile(
    r"<!--|<(script|style|title|textarea|template|noscript|xmp)(?=[\s/>])|<meta(?=[\s/>])|<body(?=[\s/>])",
    re.ASCII | re.IGNORECASE,
)
_ENDS: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.ASCII | re.IGNORECASE)
    for name in ("script", "style", "title", "textarea", "template", "noscript", "xmp")
}
_ATTRIBUTE: Final = re.compile(
    r"([^\s\"'<>/=]{1,40})\s{0,9}(?:=\s{0,9}(?:\"([^\"]{0,2000})\"|'([^']{0,2000})'|([^\s\"'<>]{1,2000})))?", re.ASCII
)
_META: Final = re.compile(r"<meta(?:[^\"'>]++|\"[^\"]{0,2000}\"|'[^']{0,2000}'){0,400}+>", re.ASCII | re.IGNORECASE)
_CAPITALS: Final = {capital: capital + 32 for capital in range(0x41, 0x5B)}
_BLANK: Final = " \t\n\r\f"


def header_signals(fields: Mapping[bytes, Sequence[bytes]]) -> tuple[str, ...]:
    """Return the signals of an HTTP header: names in lower case → the values of each field."""
    signals: list[str] = []
    for value in fields.get(b"x-robots-tag", ()):
        signals += _robots_tag(_text(value))
    signals += [f"tdm-reservation header: {_text(value)[:40]}" for value in fields.get(b"tdm-reservation", ())]
    policies = [value.decode("ascii", "replace").strip(_BLANK) for value in fields.get(b"tdm-policy", ())]
    signals += [f"tdm-policy header: {policy[:400]}" for policy in policies]
    return tuple(dict.fromkeys(signals))[:MOST_SIGNALS]


def page_signals(html: str) -> tuple[str, ...]:
    """Return the signals of a page's meta elements before its body; those in comments and scripts are none."""
    signals: list[str] = []
    place = metas = 0
    while len(signals) < MOST_SIGNALS and metas < MOST_METAS and (found := _NEXT.search(html, place, HEAD)):
        place = found.end()
        metas += found[0].translate(_CAPITALS) == "<meta"
        if found[0] == "<!--":
            place = html.find("-->", place, HEAD)
        elif found[1]:
            closing = _ENDS[found[1].translate(_CAPITALS)].search(html, place, HEAD)
            place = closing.start() if closing else -1
        elif tag := _META.match(html, found.start(), found.start() + LONGEST_META):
            signals += _meta(tag[0])
            place = tag.end()
        elif found[0].translate(_CAPITALS) == "<body":
            break
        if place < 0:
            break
    return tuple(dict.fromkeys(signals))[:MOST_SIGNALS]


def answers(header: Sequence[str] | None, page: Sequence[str] | None, kind: str | None) -> dict[str, str]:
    """Return the answers of the column `optout` but for robots.txt.

    Args:
        header: signals of the HTTP header; None where the record carries none.
        page: signals of the page; None where it is no HTML, which has none.
        kind: media type: only HTML has a page to look at.
    """
    signals = [*(header or ()), *(page or ())]
    looked = header is not None and (page is not None or kind == "text/plain")
    silent = "no" if looked else "not checked"
    robots = "yes" if any(is_said(signals, directive) for directive in COUNTED) else silent
    reserved = _reservation(page, "meta") or _reservation(header, "header")
    tdm = {"1": "yes", "0": "no"}.get(reserved, silent)
    return {"robots_meta": robots, "tdm": tdm}


def is_said(signals: Iterable[str], directive: str) -> bool:
    """Return whether `directive` is among `signals`, addressed to all robots."""
    return any(signal in (f"meta robots: {directive}", f"x-robots-tag: {directive}") for signal in signals)


@dataclass(frozen=True, slots=True)
class RespectOptOut:
    """Drops the documents that opted out, as "opt-out: robots_meta" or "opt-out: tdm"; the evidence has the signals.

    No excerpt of what it drops is shown. Place it right after `ExtractText()`: no shard holds those texts then.

    Args:
        signals: which answers of `optout` count, of "robots_txt", "robots_meta" and "tdm"; the first "yes" is the
            reason.
        also: further directives addressed to all robots, as "noindex", found in `optout_signals`: "opt-out: noindex".
        unchecked: what becomes of a document of which one of `signals` is "not checked": "keep", or "drop" as "opt-out
            not checked". Nothing looks at robots.txt: leave it out of `signals` then.

    Raises:
        ValueError: an unknown signal, directive or policy.
    """

    signals: tuple[str, ...] = ("robots_txt", "robots_meta", "tdm")
    also: tuple[str, ...] = ()
    unchecked: Literal["keep", "drop"] = "keep"

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()
    withholds: ClassVar[bool] = True
    """No excerpt of what it drops may be shown."""

    def __post_init__(self) -> None:
        if not isinstance(self.signals, tuple) or set(self.signals) - set(NOT_CHECKED) or not self.signals:
            raise ValueError(f"signals={self.signals!r}: give a tuple out of {', '.join(NOT_CHECKED)}")
        if not isinstance(self.also, tuple) or set(self.also) - set(RECORDED):
            raise ValueError(f"also={self.also!r}: give a tuple out of {', '.join(RECORDED)}")
        if self.unchecked not in ("keep", "drop"):
            raise ValueError(f"unchecked={self.unchecked!r}: choose keep or drop")

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema`.

        Raises:
            SchemaError: there is no column `optout`, or `also` needs `optout_signals` and `ExtractText` did not run.
        """
        require(schema, "RespectOptOut", optout=OPTOUT)
        if self.also:
            require(schema, "RespectOptOut", optout_signals=pa.large_string())
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Drop what opted out."""
        self.output_schema(batch.schema)
        optouts: list[dict[str, str]] = batch.column("optout").to_pylist()
        place = batch.schema.get_field_index("optout_signals")
        said: list[str | None] = [None] * len(optouts) if place < 0 else batch.column(place).to_pylist()
        reasons = [self._reason(*row) for row in zip(optouts, said, strict=True)]
        if not any(reasons):
            return kept(batch)
        dropped: list[dict[str, Any]] = [
            {"id": identity, "transform": "RespectOptOut", "reason": reason, "evidence": signals}
            for identity, reason, signals in zip(batch.column("id").to_pylist(), reasons, said, strict=True)
            if reason
        ]
        stays = np.array([not reason for reason in reasons], np.bool_)
        return kept(batch.filter(pa.array(stays)), dropped=dropped)

    def _reason(self, optout: dict[str, str], said: str | None) -> str | None:
        for name in self.signals:
            if optout[name] == "yes":
                return f"opt-out: {name}"
        for directive in self.also:
            if said and is_said(parse_signals(said), directive):
                return f"opt-out: {directive}"
        unknown = self.unchecked == "drop" and any(optout[name] == "not checked" for name in self.signals)
        return "opt-out not checked" if unknown else None


def write_signals(signals: Sequence[str]) -> str:
    """Return signals as the columns hold them: canonical JSON."""
    return canonical_json(list(signals))


def parse_signals(column: str) -> list[str]:
    """Return the signals that a column holds."""
    signals: list[str] = json.loads(column)
    return signals


def _robots_tag(value: str) -> list[str]:
    """Return the signals of one X-Robots-Tag field, "agent: a, b" or "a, b"."""
    agent, signals = "", []
    for item in value.split(",")[: 8 * MOST_SIGNALS]:
        name, colon, rest = item.partition(":")
        if colon and name.strip(_BLANK) not in _VALUED:
            agent, item = name.strip(_BLANK), rest
        directive = item.strip(_BLANK)
        if directive in RECORDED and (not agent or _NAME.fullmatch(agent)):
            to = f" {agent}" if agent not in ("", "*", "robots") else ""
            signals.append(f"x-robots-tag{to}: {directive}")
    return signals


def _meta(tag: str) -> list[str]:
    if not _MAY_SAY.search(tag):
        return []
    attributes: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(tag, len("<meta")):
        value = found[2] or found[3] or found[4] or ""
        attributes.setdefault(found[1].translate(_CAPITALS), value)
    name = attributes.get("name", "").translate(_CAPITALS).strip(_BLANK)
    content = attributes.get("content", "").strip(_BLANK)
    if name in ("tdm-reservation", "tdm-policy"):
        return [f"{name} meta: {content[:400]}"]
    if name != "robots" and not _CRAWLER.fullmatch(name):
        return []
    directives = re.split(r"[,;\s]+", content.translate(_CAPITALS), flags=re.ASCII)
    return [f"meta {name}: {directive}" for directive in directives if directive in RECORDED]


def _reservation(signals: Sequence[str] | None, place: str) -> str:
    """Return the reservation that signals of the page or of the header state, the first valid one, "" for none."""
    prefix = f"tdm-reservation {place}: "
    found = [signal.removeprefix(prefix) for signal in signals or () if signal.startswith(prefix)]
    return next((value for value in found if value in ("0", "1")), "")


def _text(value: bytes) -> str:
    return value.decode("ascii", "replace").translate(_CAPITALS).strip(_BLANK)
