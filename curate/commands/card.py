"""`curate card`: what a fitted model (a classifier, levels, topics, thresholds) was made of and what it is worth."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.topic_card import topic_lines
from curate.configuration import ConfigurationError
from curate.digests import short
from curate.receipts import committed_folders, read_manifest
from curate.store import Store

if TYPE_CHECKING:
    from curate.products import ModelFiles

Ratio = list[int] | None

WIDTH: Final = 40
"""Characters of the bars of the calibration."""
POINTS: Final = 10
"""Points of the precision-recall curve that are shown."""
FEATURES: Final = 12


def add_card(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `card`."""
    command.set_defaults(command=show_cards)
    command.add_argument("store", metavar="DIR", help=f"store: {STORE_HELP}")
    command.add_argument("--name", metavar="STAGE", help="of the stage, or the beginning of its key (default: all)")
    command.add_argument("--json", action="store_true", help="as one line of JSON each")
    command.add_argument("--save", type=Path, metavar="FOLDER", help="copy the files of the model there, to publish")
    add_store_options(command)


def show_cards(options: argparse.Namespace) -> int:
    """Print the cards and return the exit status.

    Raises:
        ConfigurationError: nothing of that name was fitted, or several models are to be saved into one folder.
    """
    store = store_of(options)
    fitted = list(models_in(store))
    models = [model for model in fitted if _is_wanted(model, options.name)]
    if not models:
        which = f" called {options.name!r}" if options.name else ""
        there = ", ".join(sorted({repr(model.name) for model in fitted}))
        remedy = f"it has {there}" if fitted else "run a recipe that fits one"
        raise ConfigurationError(f"{store.url('')} has no fitted model{which}: {remedy}")
    if options.save is not None:
        if len(models) > 1:
            names = ", ".join(f"{model.name} ({short(model.key)})" for model in models)
            raise ConfigurationError(f"--save takes one model, say which with --name: {names}")
        save(models[0], options.save)
    for model in models:
        sys.stdout.write(_line(model) if options.json else "\n".join(lines(model)) + "\n\n")
    return 0


def models_in(store: Store) -> list[ModelFiles]:
    """Return all fitted models of a store, by folder."""
    from curate.products import ModelFiles, open_product

    found = []
    for folder in committed_folders(store):
        manifest = read_manifest(store, folder)
        if manifest["kind"] == "model":
            model = open_product(store, manifest["name"], manifest["key"])
            if isinstance(model, ModelFiles):
                found.append(model)
    return found


def save(model: ModelFiles, folder: Path) -> None:
    """Copy the files of `model`, and its card as card.json, into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in model.manifest["files"]:
        (folder / name).write_bytes(Path(model.file(name)).read_bytes())
    (folder / "card.json").write_text(json.dumps(_told(model), indent=1, ensure_ascii=False) + "\n", "utf-8")


def lines(model: ModelFiles) -> Iterator[str]:
    """Yield a card in words."""
    verb = model.manifest["operation"]["verb"]
    yield f"{model.name} ({short(model.key)}): {verb}"
    for name, entry in model.manifest["files"].items():
        yield f"  {name}: {entry['bytes']:,} bytes, BLAKE3 {entry['digest']}"
    card = model.card
    if verb == "train classifier":
        yield from _classifier(card)
    elif verb == "fit levels":
        yield from _levels(card)
    elif verb == "fit topics":
        yield from topic_lines(card)
    else:
        yield from (f"  {line}" for line in json.dumps(card, indent=1, ensure_ascii=False).splitlines())


def _is_wanted(model: ModelFiles, name: str | None) -> bool:
    return name is None or model.name == name or model.key.startswith(name)


def _told(model: ModelFiles) -> dict[str, Any]:
    digests = {name: entry["digest"] for name, entry in model.manifest["files"].items()}
    return {"name": model.name, "key": model.key, "operation": model.manifest["operation"], "files": digests,
            "card": dict(model.card)}  # fmt: skip


def _line(model: ModelFiles) -> str:
    return json.dumps(_told(model), sort_keys=True, ensure_ascii=False) + "\n"


def _classifier(card: Mapping[str, Any]) -> Iterator[str]:
    yield f"  {card['kind']}, windows of {card['width']:,} characters"
    for part, counts in card["documents"].items():
        told = [f"{counts[name]:,} {name}" for name in ("positive", "negative", "unlabelled") if counts[name]]
        name = f"{part} {card['left_out']!r}" if part == "left-out source" and card["left_out"] else part
        yield f"  {name}: {', '.join(told) or 'none'}" + (f", {counts['sites']:,} sites" if counts["sites"] else "")
    for reason, counts in card["gone"].items():
        if any(counts.values()):
            yield f"  went as {reason}: {counts['positive']:,} positive, {counts['negative']:,} negative"
    yield "  area under the ROC curve, of what training never saw"
    yield from (f"    {name:<18} {_share(ratio)}" for name, ratio in card["auc"].items())
    yield f"  share of the variance of scores that is explained, on {card['explained_on']}"
    for name, found in card["explained"].items():
        said = "-" if found is None else f"{found['share'] / 1e6:.3f}  ({found['groups']:,} groups)"
        yield f"    {name:<18} {said}"
    yield from _curve(card["precision_recall"])
    yield from _calibration(card["calibration"])
    for sense, features in (card["features"] or {}).items():
        yield f"  features that tell, {sense}"
        yield from (
            f"    {feature['weight'] / 1000:+7.2f}  {feature['kind']:<5} {feature['example']!r}"
            for feature in features[:FEATURES]
        )


def _share(ratio: Ratio) -> str:
    return "-" if ratio is None else f"{ratio[0] / ratio[1]:.4f}"


def _curve(points: list[dict[str, int]]) -> Iterator[str]:
    if not points or not points[-1]["positives"]:
        return
    yield "  from a score on (thousandths): precision, recall"
    for point in points[:: max(1, len(points) // POINTS)]:
        kept = point["positives"] + point["negatives"]
        recall = point["positives"] / points[-1]["positives"]
        yield f"    {point['score']:>7,}   {point['positives'] / kept:.3f}  {recall:.3f}"


def _calibration(bins: list[dict[str, int]]) -> Iterator[str]:
    yield "  probability: held out, positives among them, mean predicted" + (
        "; documents of the target" if "target" in bins[0] else ""
    )
    most = max((found.get("target", 0) for found in bins), default=0)
    for found in bins:
        count = found["held_out"]
        said = f"{found['positives'] / count:.3f}  {found['predicted'] / count / 1e6:.3f}" if count else "    -      -"
        start = found["from"] / 1e6
        line = f"    {start:.1f}-{start + 0.1:.1f}  {count:>7,}  {said}"
        if "target" in found:
            line += f"  {found['target']:>9,} {'█' * (WIDTH * found['target'] // max(1, most))}"
        yield line.rstrip()


def _levels(card: Mapping[str, Any]) -> Iterator[str]:
    yield f"  of {card['column']}, {'per ' + card['per'] if card['per'] else 'all documents'}; keep {card['keep']}"
    for group, found in card["groups"].items():
        yield f"  {group or 'all' if not card['per'] else group or 'without a value'}: borders {found['borders']}"
        for number, level in enumerate(found["levels"]):
            yield f"    level {number}: {level['documents']:,} documents, weight {level['weight']:,}"
