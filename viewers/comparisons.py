"""What a stage that takes repeats away compares, who stays, and under which reasons documents go: in words."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from transforms.exact_numbers import decimal_text
from viewers.loading import StageView
from viewers.numbers import fixed, grouped, rounded
from viewers.settings import decimal_of
from viewers.visible import shortened

TONES: Final = {
    "empty text": "structural",
    "equal text": "equal",
    "equal URL": "equal",
    "near duplicate": "dropped",
    "semantic duplicate": "dropped",
}
"""Reasons under which a document goes for another, and how a bar shows them."""


def reasons_of(stage: StageView) -> tuple[str, ...]:
    """Return the reasons under which a deduplication drops documents, in the order of its columns."""
    kind = stage.operation.get("operation")
    if kind == "deduplicate semantically":
        return ("semantic duplicate",)
    if kind == "deduplicate by a column":
        return ("equal text",) if _fields(stage).get("form") is None else ("equal URL",)
    return ("empty text", "equal text", "near duplicate")


def describe(stage: StageView) -> str:
    """Return in words what is compared and who stays."""
    fields, kind = _fields(stage), stage.operation.get("operation")
    rules = [*map(_preferred, fields.get("prefer", [])), "the lowest digest of the text", "the lowest id"]
    stays = f"Of two that are alike stays the one with {', then '.join(rules)}."
    if fields.get("against"):
        stays += " Documents of an earlier dataset come before all, and always stay."
    if kind == "deduplicate semantically":
        return f"{_semantic(fields)} {stays}"
    if kind == "deduplicate by a column":
        what = "texts" if fields.get("form") is None else "URLs in their normal form"
        return f"Documents with equal {what} (column {shortened(str(fields.get('column')))}): one stays. {stays}"
    if kind == "cut repeats":
        return f"{_parts(fields)} {stays}"
    return f"{_texts(fields)} {stays}"


def _preferred(rule: str) -> str:
    """Return in words by what one document is preferred to another: "the earlier source", "the larger length"."""
    if rule.removeprefix("-") == "length":
        return "the longer text" if rule.startswith("-") else "the shorter text"
    if rule.removeprefix("-") == "source":
        return f"the source that was named {'later' if rule.startswith('-') else 'earlier'}"
    return f"the {'larger' if rule.startswith('-') else 'smaller'} {shortened(rule.removeprefix('-'), 60)}"


def _fields(stage: StageView) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = stage.operation.get("fields", {})
    return fields


def _texts(fields: Mapping[str, Any]) -> str:
    method = fields.get("method")
    within = f"within each {fields['within']}" if fields.get("within") else "all with all"
    if not method:
        return f"Equal texts are compared {within}; near duplicates are not looked for."
    of = method["fields"]
    threshold = Fraction(decimal_of(of["threshold"]))
    candidate = 1 - (1 - threshold ** of["rows"]) ** of["bands"]
    chance = fixed(rounded(candidate.numerator, candidate.denominator, 4), 4)
    measure = "Jaccard similarity" if of.get("measure", "jaccard") == "jaccard" else of["measure"]
    stay = "one that stays" if fields.get("keep", 1) == 1 else f"{fields['keep']} that stay"
    unit = of.get("unit", "word")
    rule = (fields.get("without_templates") or {}).get("fields")
    without = ""
    if rule:
        share = decimal_text(Fraction(decimal_of(rule["share"])))
        without = (
            f" Shingles in more than {share} of a source's distinct texts, {rule['least']} at least, do not count."
        )
    return (
        f"Equal texts collapse first. Then MinHash over {unit} {of['ngram']}-grams in {of['bands']} bands of "
        f"{of['rows']} rows proposes pairs {within}, and each pair is compared on its shingles: a document goes if its "
        f"{measure} with {stay} is at least {decimal_text(threshold)}. A pair of that Jaccard similarity is "
        f"proposed with probability {chance}.{without}"
    )


def _semantic(fields: Mapping[str, Any]) -> str:
    embedder = shortened(str((fields.get("embedder") or {}).get("class", "an embedder")))
    clusters = fields.get("clusters")
    many = f"{grouped(clusters)} clusters" if clusters else "clusters"
    least = decimal_text(Fraction(decimal_of(fields["similarity"])))
    return (
        f"Vectors of {embedder} are put into {many}; within one a document goes if its cosine with one that stays is "
        f"at least {least}. Documents of unlike clusters are not compared."
    )


def _parts(fields: Mapping[str, Any]) -> str:
    what = (fields.get("what") or {}).get("fields", {})
    if "unit" not in what:
        return f"Spans of at least {what.get('words')} words that stand earlier are cut."
    more = what.get("more_than")
    if more is None:
        return f"A {shortened(str(what['unit']))} that stands earlier is cut; the first stays."
    return f"Every {shortened(str(what['unit']))} that stands more than {grouped(more)} times is cut, the first too."
