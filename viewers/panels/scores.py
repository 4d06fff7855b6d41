"""Scores: the cards of classifiers, what they are worth on what they never saw, and what the levels of scores hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from viewers.budget import ROWS
from viewers.loading import ProductView, Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, rounded, share
from viewers.panels.panel import Panel
from viewers.tables import Group, Mark, code, facts, left_out, table
from viewers.visible import shortened

NONE = "–"
FEATURES = 10


def scores(report: Report) -> Panel | None:
    """Return the panel; None for a result without classifiers and levels."""
    models = [product for product in report.products if product.kind == "model"]
    found = [part for model in models[:ROWS] if (part := _model(model)) is not None]
    if not found:
        return None
    lede = (
        "Look for a source or a length that alone does nearly as well as the classifier: that may be what it learned. "
        "And for tenths of probability with documents of the target and none that judged: there figures say nothing."
    )
    return Panel("scores", "Scores", lede, join([*found, left_out(max(len(models) - ROWS, 0), "models")]))


def _model(model: ProductView) -> Markup | None:
    card: Mapping[str, Any] = model.manifest["card"]
    if "auc" in card:
        return join([element("h3", shortened(model.name)), *_classifier(model, card)])
    if "groups" in card and "keep" in card:
        return join([element("h3", shortened(model.name)), _levels(card)])
    return None


def _classifier(model: ProductView, card: Mapping[str, Any]) -> Iterator[Markup]:
    digests = [entry["digest"] for entry in model.manifest["files"].values()]
    documents = card["documents"]
    pairs: list[tuple[str, Child]] = [
        ("Kind", str(card["kind"])),
        ("Digest of the model", code(digests[0])),
        ("Left-out source", shortened(str(card["left_out"])) if card["left_out"] else "none"),
        *((name.capitalize(), _sizes(documents[name])) for name in ("training", "held-out sites", "target")),
    ]
    yield facts(pairs)
    yield _areas(card)
    yield _calibration(card["calibration"])
    if card["features"]:
        yield _features(card["features"])


def _sizes(counts: Mapping[str, int]) -> str:
    told = [f"{grouped(counts[name])} {name}" for name in ("positive", "negative", "unlabelled") if counts[name]]
    return f"{', '.join(told) or 'none'}" + (f" of {counted(counts['sites'], 'site')}" if counts["sites"] else "")


def _areas(card: Mapping[str, Any]) -> Markup:
    rows: list[list[Child]] = [
        [name, NONE, NONE] if pair is None else [name, fixed(rounded(pair[0], pair[1], 4), 4), grouped(pair[1] // 2)]
        for name, pair in card["auc"].items()
    ]
    explained = [
        f"{name} {fixed(rounded(found['share'], 1_000_000, 3), 3)}"
        for name, found in card["explained"].items()
        if found is not None
    ]
    note = (
        "Area under the ROC curve: the share of pairs (positive, negative) in which the positive scores higher, of "
        "documents that did not train. Share of the variance of scores that is explained, on "
        f"{card['explained_on']}: {', '.join(explained) or 'nothing to compare'}."
    )
    built = table("What the classifier is worth", Mark.EXACT, ("Among", "area", "pairs"), rows)
    return join([built, element("p", note, class_="note")])


def _calibration(bins: Sequence[Mapping[str, int]]) -> Markup:
    aims = "target" in bins[0]
    rows: list[list[Child]] = []
    for found in bins:
        count = found["held_out"]
        cells: list[Child] = [
            f"from {fixed(rounded(found['from'], 1_000_000, 1), 1)}",
            grouped(count),
            share(found["positives"], count) if count else NONE,
            share(found["predicted"], count * 1_000_000) if count else NONE,
        ]
        rows.append([*cells, grouped(found["target"])] if aims else cells)
    columns = (
        "Probability",
        "judged",
        "of these positive",
        "predicted",
        *(["documents of the target"] if aims else []),
    )
    return table("Calibration", Mark.EXACT, columns, rows)


def _features(features: Mapping[str, Sequence[Mapping[str, Any]]]) -> Markup:
    groups = []
    for sense, found in features.items():
        rows: list[list[Child]] = [
            [code(shortened(repr(told["example"]), 80)), str(told["kind"]), fixed(told["weight"] // 10, 2)]
            for told in found[:FEATURES]
        ]
        if rows:
            groups.append(Group(sense, rows))
    columns = ("An example of the feature", "kind", "weight")
    return table("Features that tell most", Mark.EXACT, columns, groups, words=frozenset({"kind"}))


def _levels(card: Mapping[str, Any]) -> Markup:
    groups, shown = [], 0
    for group, found in card["groups"].items():
        borders = [None, *found["borders"]]
        total = sum(level["weight"] for level in found["levels"])
        rows: list[list[Child]] = [
            [
                f"level {number}",
                NONE if border is None else fixed(border, 3),
                grouped(level["documents"]),
                share(level["weight"], total) if total else NONE,
            ]
            for number, (border, level) in enumerate(zip(borders, found["levels"], strict=True))
        ]
        shown += 1
        if shown <= ROWS:
            groups.append(Group(_title(card, group), rows))
    column = shortened(str(card["column"]))
    built = table(f"Levels of {column}", Mark.EXACT, ("Level", "from", "documents", "of the weight"), groups)
    return join([built, left_out(max(shown - ROWS, 0), "groups")])


def _title(card: Mapping[str, Any], group: str) -> str:
    if card["per"] is None:
        return "all documents"
    return shortened(group) if group else f"without {shortened(str(card['per']))}"
