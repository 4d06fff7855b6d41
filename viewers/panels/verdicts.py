"""Verdicts: what came out, the digests to quote, and the checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from viewers.budget import ROWS
from viewers.checks import check_report
from viewers.flows import all_flows
from viewers.hosts import hosts_of
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import THIN, counted, grouped
from viewers.panels.panel import Panel
from viewers.tables import Mark, code, facts, left_out, mark, table
from viewers.verdict import Check, Verdict
from viewers.visible import shortened

PANELS: Final[Mapping[str, tuple[str, ...]]] = {
    "funnel": (
        "documents-conserved",
        "characters-conserved",
        "bytes-conserved",
        "stages-joined",
        "outputs-filled",
        "sources-reach-outputs",
        "no-gaps",
        "quarantine-empty",
    ),
    "lineage": ("manifests-agree",),
    "rights": ("licences-known", "optout-checked"),
    "personal-data": ("personal-data-masked",),
    "duplicates": ("deduplicated", "pairs-compared", "recall-measured"),
    "contamination": ("benchmarks-checked",),
    "tokens": ("caches-complete",),
    "hold-out": ("validation-apart", "sources-held-out"),
    "mixture": ("plan-adds-up", "plan-fits-caches", "epochs-few", "shares-met"),
    "loss": ("runs-of-this-plan",),
}
"""Panel → checks whose numbers it shows: where one of these is made, the panel is there."""

SIGNS: Final = {Verdict.PASS: "✓", Verdict.WARN: "!", Verdict.FAIL: "✕"}


def verdicts(report: Report) -> Panel:
    """Return the panel."""
    checks = check_report(report)
    body = join([opening(report), _checks(checks), _outputs(report), _digests(report)])
    lede = (
        "Start here: which checks fail or warn. A failed one means that this result must not be used; a warning is "
        "something to know, and may be intended. Each question leads to the panel with its numbers."
    )
    return Panel("verdicts", "Verdicts", lede, body)


def opening(report: Report) -> Markup:
    """Return the result in one sentence."""
    read = sum(flow.reading.count("records") for flow in all_flows(report) if flow.reading is not None)
    parts = [
        counted(stage.manifest["rows"], "document") + ("" if name == "documents" else f" in {shortened(name)}")
        for name, stage in _outputs_of(report)
    ]
    parts += [f"{counted(tokens, 'token')} for {shortened(name)}" for name, tokens in _tokens(report)]
    kept = ", ".join(parts)
    if report.plan is not None:
        tokens = sum(report.plan.tokens_read().values())
        kept += f". The plan of training reads {counted(tokens, 'token')}, repeats among them"
    sentence = f"{counted(read, 'record')} from {counted(len(report.sources), 'source')} became {kept}."
    return element("p", sentence, " ", mark(Mark.EXACT), class_="opening")


def _outputs_of(report: Report) -> list[tuple[str, StageView]]:
    return list(report.outputs.items())[:5]


def _tokens(report: Report) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for cell in report.cells:
        counts[cell.output] = counts.get(cell.output, 0) + cell.description.tokens
    return list(counts.items())[:5]


def _outputs(report: Report) -> Markup:
    rows = [_output(name, stage) for name, stage in list(report.outputs.items())[:ROWS]]
    columns = ("Output", "Documents", "Characters", "Sources", "Shards", "Hosts")
    built = table("What came out", Mark.EXACT, columns, rows)
    note = None
    counts = [hosts_of(stage) for stage in report.outputs.values()]
    if any(hosts and not hosts.is_exact for hosts in counts):
        note = element(
            "p",
            f"Hosts with ≈ are estimated from a HyperLogLog sketch, standard error 1.6{THIN}% ",
            mark(Mark.SKETCHED),
            class_="note",
        )
    return join([built, note, left_out(len(report.outputs) - len(rows), "outputs")])


def _output(name: str, stage: StageView) -> list[Child]:
    groups = stage.statistics.get("groups", {}).get("source", {})
    hosts = hosts_of(stage)
    return [
        shortened(name),
        grouped(stage.manifest["rows"]),
        grouped(sum(group["characters"] for group in groups.values())),
        grouped(len([group for group in groups.values() if group["documents"]])),
        grouped(stage.shards),
        "–" if hosts is None else ("" if hosts.is_exact else "≈ ") + grouped(hosts.number),
    ]


def _digests(report: Report) -> Markup:
    pairs: list[tuple[str, Child]] = [("Result", code(report.content))]
    pairs += [(f"Output {shortened(name)}", code(stage.manifest["content"])) for name, stage in _outputs_of(report)]
    pairs += [("Plan", code(report.plan.digest))] if report.plan is not None else []
    pairs += [(shortened(name).capitalize(), code(digest)) for name, digest in list(report.batches.items())[:5]]
    note = element(
        "p",
        "Content digests (BLAKE3 over logical values) to quote beside a model: whoever runs this recipe on these "
        "inputs gets the same ones, with any number of workers.",
        class_="note",
    )
    return element("div", element("h3", "Digests"), note, facts(pairs), class_="digests")


def _question(check: Check) -> Child:
    panel = next((panel for panel, checks in PANELS.items() if check.id in checks), None)
    return element("a", check.question, href=f"#{panel}") if panel else check.question


def _checks(checks: list[Check]) -> Markup:
    order = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.PASS: 2}
    numbers = {verdict: sum(check.verdict is verdict for check in checks) for verdict in Verdict}
    summary = (
        f"{counted(numbers[Verdict.FAIL], 'check')} failed, {grouped(numbers[Verdict.WARN])} warn, "
        f"{grouped(numbers[Verdict.PASS])} passed."
    )
    rows: list[list[Child]] = [
        [
            element("span", SIGNS[check.verdict], " ", check.verdict.value, class_=f"verdict {check.verdict.value}"),
            join([_question(check), element("br"), element("code", check.id, id=f"check-{check.id}")]),
            shortened(check.finding, 400),
        ]
        for check in sorted(checks, key=lambda check: order[check.verdict])
    ]
    built = table("Checks", Mark.EXACT, ("Verdict", "Question", "Finding"), rows, frozenset({"Question", "Finding"}))
    return element("div", element("h3", "Checks"), element("p", summary, class_="tally"), built, class_="checks")
