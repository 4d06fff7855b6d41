"""Lineage: the graph of stages with keys and digests, versions of all that reached the output, and how to verify."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final

from curate.digests import short
from viewers.budget import LINEAGE_BYTES, ROWS, fitting
from viewers.flows import all_flows
from viewers.graph import draw_graph
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.settings import behaviours, seeds, written
from viewers.tables import Mark, code, facts, left_out, table
from viewers.visible import shortened

SETTINGS: Final = 3000
"""Code points shown of the settings of one step."""

NO_BEHAVIOUR: Final = ("Benchmark", "Column")
"""What configurations describe by class and has no behaviour of its own."""


def lineage(report: Report) -> Panel:
    """Return the panel."""
    stages = fitting(report.stages, _stage, LINEAGE_BYTES)
    body = join(
        [
            draw_graph(report),
            _table(report),
            _inputs(report),
            _versions([stage.operation for stage in report.stages] + [made.operation for made in report.products]),
            _seeds(report),
            element("h3", "Stages in detail"),
            *stages,
            left_out(len(report.stages) - len(stages), "stages"),
            _verify(report),
        ]
    )
    lede = (
        "Look for what this result depends on: a key follows from configuration, versions and inputs, so an equal key "
        "means equal work, and a content digest names what came out."
    )
    if report.compactions:
        lede += (
            f" Left out: {counted(report.compactions, 'compact stage')}, where small shards are joined and no document "
            "changes."
        )
    return Panel("lineage", "Lineage", lede, body)


def _table(report: Report) -> Markup:
    rows: list[list[Child]] = [
        [
            shortened(stage.name),
            code(short(stage.key)),
            _made_from(stage),
            grouped(stage.manifest["rows"]),
            grouped(stage.shards),
            code(short(stage.manifest["content"])),
        ]
        for stage in report.stages[:ROWS]
    ]
    columns = ("Stage", "Key", "Made from", "Rows", "Shards", "Content digest")
    words = frozenset({"Key", "Made from", "Content digest"})
    built = table("Stages", Mark.EXACT, columns, rows, words)
    return join([built, left_out(len(report.stages) - len(rows), "stages")])


def _inputs(report: Report) -> Markup | None:
    """Return what was read of each source: by which stage, how many records, how many bytes of files."""
    rows: list[list[Child]] = []
    for flow in all_flows(report):
        if flow.reading is not None:
            reader = (flow.stage.operation.get("reader") or {}).get("fields", {})
            size = (
                sum(flow.reading.totals.values())
                if len(flow.reading.totals) == 1
                else flow.reading.totals.get("stored")
            )
            cells = [shortened(flow.source), shortened(flow.stage.name), shortened(str(reader.get("format", "–")), 60)]
            cells += [grouped(flow.reading.count("records")), "–" if size is None else grouped(size)]
            rows.append([*cells, code(short(flow.stage.key))])
    if not rows:
        return None
    columns = ("Source", "Read by stage", "Format", "Records", "Bytes of files or rows", "Key")
    built = table("Inputs", Mark.EXACT, columns, rows[:ROWS], frozenset({"Read by stage", "Format", "Key"}))
    counted_files = report.provenance is not None
    note = (
        "The key of the reading stage is made of the digests of its files, so other files give another key; "
        + ("how many there are stands under Datasheet, " if counted_files else "their number, ")
        + "names and digests of single files are not kept in the result."
    )
    omitted = left_out(max(len(rows) - ROWS, 0), "inputs")
    return join([built, omitted, element("p", note, class_="note")])


def _made_from(stage: StageView) -> str:
    inputs = ", ".join(shortened(i["name"], 60) for i in stage.manifest["inputs"]) or "files"
    models = ", ".join(shortened(i["name"], 60) for i in stage.manifest.get("models", ()))
    return f"{inputs}; models: {models}" if models else inputs


def _versions(operations: Sequence[Any]) -> Markup:
    found = sorted({behaviour for operation in operations for behaviour in behaviours(operation)}, key=str)
    rows: list[list[Child]] = [
        [shortened(b.name), shortened(b.version), ", ".join(map(shortened, b.libraries[:ROWS])) or "none"]
        for b in found
        if b.name not in NO_BEHAVIOUR
    ]
    columns = ("Reader, transform or operation", "Behaviour version", "Libraries that reach its output")
    built = table("Versions", Mark.EXACT, columns, rows[:ROWS], frozenset(columns))
    return join([built, left_out(max(len(rows) - ROWS, 0), "versions")])


def _seeds(report: Report) -> Markup | None:
    """Return the seeds of all that draws: fields named "seed" of operations, transforms and the plan."""
    found = [(made.name, what, seed) for made in report.stages for what, seed in seeds(made.operation)]
    found += [(made.name, what, seed) for made in report.products for what, seed in seeds(made.operation)]
    found += [("mixture", "plan", report.plan.seed)] if report.plan is not None else []
    if not found:
        return None
    rows: list[list[Child]] = [[shortened(name), shortened(what), str(seed)] for name, what, seed in found[:ROWS]]
    columns = ("Stage", "What draws", "Seed")
    built = table("Seeds", Mark.EXACT, columns, rows, frozenset(columns))
    return join([built, left_out(len(found) - len(rows), "seeds")])


def _stage(stage: StageView) -> Markup:
    manifest = stage.manifest
    inputs = [element("li", shortened(i["name"]), " ", code(i["key"])) for i in manifest["inputs"][:ROWS]]
    pairs: list[tuple[str, Child]] = [
        ("Key", code(stage.key)),
        ("Content digest", code(manifest["content"])),
        ("Ledger digest", code(manifest["ledger"])),
        ("Multiset of texts", code(manifest["texts"]["multiset"]["sum"]) if manifest.get("texts") else "none"),
        ("Manifest digest", code(manifest["digest"])),
        ("Quarantine list", code(manifest["quarantine"]) if manifest["quarantine"] else "empty"),
        ("Inputs", element("ul", *inputs) if inputs else "files"),
        ("Columns", ", ".join(shortened(name, 40) for name, _ in manifest["schema"][:ROWS])),
    ]
    return element(
        "details",
        element("summary", shortened(stage.name), " ", code(short(stage.key))),
        facts(pairs),
        *_settings(stage.operation),
        class_="stage",
    )


def _settings(operation: Any) -> list[Markup]:
    """Return the configuration of a stage, one block for the reader or operation and one for each step."""
    described: list[tuple[str, Any]] = []
    if operation.get("reader"):
        described.append(("reads", operation["reader"]))
    described += [(step["name"], step["transform"]) for step in operation.get("steps", [])]
    if "class" in operation:
        described.append((str(operation["operation"]), operation))
    return [
        element(
            "p",
            element("span", shortened(name), class_="step"),
            " ",
            code(shortened(written(value), SETTINGS)),
            class_="settings",
        )
        for name, value in described[:ROWS]
    ]


def _verify(report: Report) -> Markup:
    told = report.provenance
    made = version("curate") if told is None else str(told.told["curate"])
    which = (
        " installs the version that made this page; that of the result is not recorded. "
        if told is None
        else " installs the version that made the result. "
    )
    recipe = (
        "FILE is the recipe, a Python file that you must have, for the result holds no copy of it"
        if told is None or told.text is None
        else "FILE is the recipe, whose text stands under Datasheet"
    )
    return element(
        "div",
        element("h3", "How to verify and reproduce"),
        element(
            "p",
            code(f"pip install curate=={made}"),
            which,
            "The table of versions above has all whose change would change the result.",
        ),
        element(
            "p",
            code("curate verify DIR"),
            " reads the store at DIR again (the folder, or s3:// or gs:// address, that holds this page) and names any "
            "file that is not the one its manifest has; the digest of the manifest, below, is compared, too. ",
            code("curate run FILE --store DIR"),
            f" makes the result again from the inputs: {recipe}; DIR may be empty. The digest of the result must then "
            "be the one below, and so must the recipe key, which is made of the recipe’s stages and the digests of its "
            "inputs. ",
            code("curate where DIR ID"),
            " names every dataset, ledger and sample that holds the document with this id.",
        ),
        facts([("Result", code(report.content)), ("Manifest", code(report.digest)), ("Recipe key", code(report.key))]),
        class_="verify",
    )
