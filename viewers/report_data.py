"""`report.json`: what the report page says, as values, for programs. Its tables are those of the page, cell by cell.

Invariants: canonical JSON with its own digest, the same bytes for the same store; every string is as the page shows it
(hidden characters named, names from data cut after 120 code points), so nothing in it hides, reorders or ends
anything. Format: docs/formats.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from curate.formats import Format
from curate.store import StoreError, check_self_digest, json_line, self_digested
from viewers.flows import all_flows
from viewers.loading import Report
from viewers.panels.panel import Panel
from viewers.table_data import json_of
from viewers.verdict import Check, Verdict
from viewers.visible import plain, shortened

FILE: Final = "report.json"
FORMAT: Final = Format(1, "write it again with curate report")
"""Version 1: the first."""


def report_json(report: Report, checks: Sequence[Check], panels: Sequence[Panel]) -> bytes:
    """Return the content of `report.json`."""
    shown = [{"id": panel.anchor, "title": panel.title, **json_of(panel.body.data)} for panel in panels]
    return json_line(self_digested({**about(report, checks), "panels": shown}))


def about(report: Report, checks: Sequence[Check]) -> dict[str, Any]:
    """Return what `report.json` says but for its panels."""
    return {
        "format": FORMAT.stamp,
        "kind": "report",
        "name": plain(shortened(report.name)),
        "key": report.key,
        "content": report.content,
        "manifest": report.digest,
        "plan": None if report.plan is None else report.plan.digest,
        "batches": {plain(shortened(name)): digest for name, digest in report.batches.items()},
        "totals": totals(report),
        "sources": [plain(shortened(source)) for source in report.sources],
        "checks": [_check(check) for check in checks],
    }


def read_report_json(content: bytes, path: str) -> dict[str, Any]:
    """Return what `content`, read from `path`, says.

    Raises:
        StoreError: it is damaged, or no `report.json`.
        FormatError: it has a version that is not read.
    """
    try:
        value = json.loads(content)
    except ValueError as error:
        raise StoreError(f"{path} is no report.json: {error}. Write it again with curate report") from error
    checked = check_self_digest(value, path)
    if checked.get("kind") != "report":
        raise StoreError(f"{path} is no report.json: its kind is {checked.get('kind')!r}")
    lifted = FORMAT.lift(checked, path)
    if problem := _shape(lifted):
        raise StoreError(f"{path} is no report.json: {problem}")
    return lifted


def totals(report: Report) -> dict[str, int]:
    """Return the figures of the whole result: what was read, and what is in its outputs and caches."""
    flows = list(all_flows(report))
    groups = [stage.statistics.get("groups", {}).get("source", {}) for stage in report.outputs.values()]
    return {
        "records": sum(flow.reading.count("records") for flow in flows if flow.reading is not None),
        "documents": sum(stage.manifest["rows"] for stage in report.outputs.values()),
        "characters": sum(group["characters"] for found in groups for group in found.values()),
        "tokens": sum(cell.description.tokens for cell in report.cells),
        "sources": len(report.sources),
    }


def failed_checks(data: Mapping[str, Any]) -> list[str]:
    """Return the ids of the checks that failed."""
    return [check["id"] for check in data["checks"] if check["verdict"] == Verdict.FAIL.value]


def _shape(value: Mapping[str, Any]) -> str:
    """Return what is wrong with the parts that are read again, "" when nothing is."""
    try:
        texts = [value[name] for name in ("name", "content", "manifest")]
        numbers = [value["totals"][name] for name in ("documents", "tokens", "sources")]
        texts += [check[name] for check in value["checks"] for name in ("id", "verdict")]
        for panel in value["panels"]:
            texts += [panel["id"], panel["title"], *(table["caption"] for table in panel["tables"])]
            for table in panel["tables"]:
                texts += table["columns"]
                if any(len(row) != len(table["columns"]) for row in table["rows"]):
                    return f"a row of {shortened(str(table['caption']))} has another number of cells than columns"
                cells = [cell for row in table["rows"] for cell in row]
                numbers += [cell for cell in cells if not isinstance(cell, str)]
            facts = [part for facts in panel["facts"] for name, value in facts for part in (name, value)]
            numbers += [part for part in facts if not isinstance(part, str)]
            numbers += [left["count"] for left in panel["left_out"]]
    except (KeyError, TypeError, ValueError) as error:
        return f"a field is missing or of another type: {error}"
    right = all(isinstance(text, str) for text in texts) and all(type(number) is int for number in numbers)
    return "" if right else "a field has another type"


def _check(check: Check) -> dict[str, str]:
    return {
        "id": check.id,
        "verdict": check.verdict.value,
        "question": check.question,
        "finding": plain(shortened(check.finding, 400)),
    }
