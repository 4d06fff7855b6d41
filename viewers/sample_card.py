"""One document as a sample: where it is from, its measure against the threshold, and its text, shortened and folded.

Every string of a sample is hostile: it goes through `viewers.markup.text`, and an address is text, never a link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from curate.accounting.samples import HEAD
from transforms.pii import MaskPII
from viewers.differences import Piece, compare
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, ratio
from viewers.spans import marked, spans_of
from viewers.toxic import is_toxic
from viewers.visible import shortened

OPEN: Final = 280
"""Code points of a text that are shown unfolded, and lines."""
OPEN_LINES: Final = 8

WORD: Final = 30
"""Code points of a word that is not cut through."""

CRUMB: Final = 40
"""A rest of so many code points is not folded."""

SPACES: Final = str.maketrans({" ": "·", "\t": "→", "\n": "↵\n", "\xa0": "⍽"})
"""What stands for white space where nothing else changed."""

OFFENSIVE: Final = "may offend: show text and address"
"""What a reader clicks to see a text that was found by what looks for such texts (`viewers.toxic`)."""

ADDRESS: Final = 160
EVIDENCE: Final = 400
MASKS: Final = tuple(MaskPII().masks.values())
"""What stands for personal data in every excerpt (`transforms.pii.mask_excerpt`)."""

_MASK: Final = re.compile("(" + "|".join(map(re.escape, MASKS)) + ")")

UNITS: Final = {"stored": ("byte", ""), "stream": ("byte", " of the decompressed stream"), "row": ("row", "")}


@dataclass(frozen=True, slots=True)
class Excerpts:
    """Which sources forbid that their texts are shown."""

    forbidden: frozenset[str]

    @staticmethod
    def of(report: Report) -> Excerpts:
        """Return what the readers of `report` say."""
        readers = [stage.operation.get("reader") for stage in report.stages]
        fields = [reader["fields"] for reader in readers if reader]
        return Excerpts(frozenset(field["source"] for field in fields if not field.get("excerpts", True)))


def card(sample: Mapping[str, Any], others: Sequence[Mapping[str, Any]], excerpts: Excerpts) -> Markup:
    """Return the card of `sample`, a row of `ledger.SAMPLES` of `curate.accounting`; `others` have the same text."""
    is_pair = sample["after"] is not None and sample["after"] != sample["excerpt"]
    more = None
    if others:
        ids = [element("li", element("code", other["id"].hex())) for other in others]
        summary = element("summary", f"the same text {counted(len(others), 'more time')} among the samples")
        more = element("details", summary, element("ul", *ids, class_="ids"))
    body = difference(sample) if is_pair else alike(sample) if sample["after"] else excerpt(sample, excerpts)
    shown = join([body, origin(sample)])
    if is_toxic(sample):
        shown = element("details", element("summary", OFFENSIVE), shown, class_="toxic")
    return element("article", measure(sample), shown, more, class_="sample wide" if is_pair else "sample")


def measure(sample: Mapping[str, Any]) -> Markup | None:
    """Return what was measured, the exact value, and what a kept document satisfies."""
    if sample["measure"] is None:
        return None
    value = "" if sample["numerator"] is None else ratio(sample["numerator"], sample["denominator"])
    bound: Child = None
    if sample["threshold"] is not None:
        bound = join([" · must be ", element("b", shortened(sample["threshold"]))])
    return element("p", shortened(sample["measure"]), " ", element("b", value), bound, class_="measure")


def origin(sample: Mapping[str, Any]) -> Markup:
    """Return where the document is from, and its id."""
    place = sample["origin"]
    unit, of = UNITS.get(place["place"], (shortened(place["place"]), ""))
    address = None if sample["url"] is None else element("bdi", shortened(sample["url"], ADDRESS), class_="address")
    return element(
        "footer",
        element("span", f"{shortened(sample['source'])}, {counted(sample['characters'], 'character')}"),
        address,
        element("span", element("bdi", shortened(place["uri"])), f" at {unit} {grouped(place['offset'])}{of}"),
        element("code", sample["id"].hex(), title="id"),
        _evidence(sample["evidence"]),
    )


def _evidence(evidence: str | None) -> Markup | None:
    if evidence is None:
        return None
    try:
        shown = _in_words(json.loads(evidence))
    except ValueError:
        shown = evidence
    return element("span", element("bdi", shortened(shown, EVIDENCE)), class_="evidence")


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_in_words(item)}" for name, item in value.items())
    if isinstance(value, list) and value and all(isinstance(i, list) and len(i) == 2 for i in value):
        return "characters " + ", ".join(f"{begin}–{end}" for begin, end in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def excerpt(sample: Mapping[str, Any], excerpts: Excerpts) -> Markup:
    """Return the text of `sample`: its beginning, and the rest folded."""
    if not sample["excerpt"]:
        why = "The text is empty."
        if sample["characters"]:
            why = "This source does not allow its texts to be shown."
            if sample["source"] not in excerpts.forbidden:
                why = "The text is not shown."
        return element("p", why, class_="withheld")
    pieces = marked(sample, spans_of(sample["evidence"]), MASKS) if sample["kind"] != "edited" else None
    return folded(pieces or [Piece(sample["excerpt"], False)])


def alike(sample: Mapping[str, Any]) -> Markup:
    """Return the stretch of an edit whose sides read alike because excerpts are masked too; masks are marked."""
    pieces = [Piece(part, part in MASKS) for part in _MASK.split(sample["after"]) if part]
    return folded(pieces)


def difference(sample: Mapping[str, Any]) -> Markup:
    """Return the stretch around the first change before and after the edit, what changed being marked."""
    left, right = compare(sample["excerpt"], sample["after"], HEAD)
    return element(
        "div",
        element("div", element("h5", "before"), folded(left, "del")),
        element("div", element("h5", "after"), folded(right, "ins")),
        class_="difference",
    )


def folded(pieces: Iterable[Piece], changed: str = "mark") -> Markup:
    """Return `pieces` with what follows the first `OPEN` code points folded; changed pieces in an element `changed`."""
    pieces = list(pieces)
    head, rest = _cut(pieces, _opening("".join(piece.text for piece in pieces)))
    shown = element("div", *(_piece(piece, changed) for piece in head), class_="text", dir="auto")
    if not rest:
        return shown
    length = sum(len(piece.text) for piece in rest)
    changes = sum(piece.changed for piece in rest)
    noun = "marked part" if changed == "mark" else "change"
    more = f"{counted(length, 'character')} more" + (f", {counted(changes, noun)}" if changes else "")
    body = element("div", *(_piece(piece, changed) for piece in rest), class_="text", dir="auto")
    return join([shown, element("details", element("summary", more), body)])


def _opening(text: str) -> int:
    """Return how many code points are shown: `OPEN` in whole words, `OPEN_LINES` lines, or all where little follows."""
    place = -1
    for _ in range(OPEN_LINES):
        place = text.find("\n", place + 1)
        if place < 0:
            break
    limit = min(OPEN, place) if place >= 0 else OPEN
    if not text[limit : limit + 1].isspace() and (space := text.rfind(" ", limit - WORD, limit)) > 0:
        limit = space
    return len(text) if len(text) - limit <= CRUMB and text.count("\n", limit) <= 1 else limit


def _cut(pieces: Iterable[Piece], place: int) -> tuple[list[Piece], list[Piece]]:
    head, rest = [], []
    for piece in pieces:
        if len(piece.text) <= place:
            head.append(piece)
        elif place > 0:
            head.append(Piece(piece.text[:place], piece.changed))
            rest.append(Piece(piece.text[place:], piece.changed))
        else:
            rest.append(piece)
        place = max(place - len(piece.text), 0)
    return head, rest


def _piece(piece: Piece, changed: str) -> Child:
    if not piece.changed:
        return piece.text
    return element(changed, piece.text.translate(SPACES) if not piece.text.strip(" \t\n\r\xa0") else piece.text)
