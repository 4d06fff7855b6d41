"""Checks of a result, computed from its manifests and statistics; each has an id that stays the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from curate.accounting.quarantine import PREFIX
from curate.recall import Recall
from viewers.flows import Flow, Identity, all_flows, held_out, place_name
from viewers.loading import Report, StageView
from viewers.masking import unmasked_sources
from viewers.numbers import counted, grouped, share
from viewers.rights import rights_of
from viewers.token_checks import check_tokens
from viewers.trained import trained_by_licence
from viewers.verdict import Check, Verdict, verdict_of
from viewers.visible import shortened


def check_report(report: Report) -> list[Check]:
    """Return all checks in a fixed order; those of caches, plan and runs only where there are any."""
    flows = list(all_flows(report))
    return [
        *_conservation(flows),
        _joined(report, flows),
        _manifests(report),
        _outputs(report),
        _sources(report),
        _gaps(flows),
        _quarantine(report, flows),
        _licences(report),
        _optouts(report),
        _personal(report),
        *_duplicates(report),
        *check_tokens(report),
    ]


def _conservation(flows: Iterable[Flow]) -> Iterator[Check]:
    found: dict[str, list[tuple[Flow, str, Identity]]] = {"documents": [], "characters": [], "bytes": []}
    for flow in flows:
        for step, identity in flow.identities():
            unit = "bytes" if identity.unit in ("bytes", "rows") else identity.unit
            found[unit].append((flow, step, identity))
    for check, unit, question in (
        ("documents-conserved", "documents", "Is every document kept, or dropped with a reason?"),
        ("characters-conserved", "characters", "Is every character kept, dropped or cut on record?"),
        ("bytes-conserved", "bytes", "Is every byte of the files a record or a recorded loss?"),
    ):
        wrong = [(flow, step) for flow, step, identity in found[unit] if not identity.holds]
        finding = f"{counted(len(found[unit]), 'sum')} checked, {grouped(len(wrong))} wrong"
        if wrong:
            flow, step = wrong[0]
            finding += f"; the first: {flow.source} in {flow.stage.title}, {step}"
        yield Check(check, question, verdict_of(wrong), finding)


def _joined(report: Report, flows: Iterable[Flow]) -> Check:
    flows = list(flows)
    out = {(f.stage.name, f.stage.key, f.source): (f.documents_out, f.characters_out) for f in flows}
    held = {(f.stage.name, f.stage.key, f.source): held_out(f) for f in flows if f.stage.holds_out}
    wrong, compared = [], 0
    for flow in flows:
        inputs = flow.stage.manifest["inputs"]
        if not inputs:
            continue
        came = [out.get((i["name"], i["key"], flow.source), (0, 0)) for i in inputs]
        if flow.stage.part == "valid" and flow.stage.holds_out:
            if (train := report.sibling(flow.stage)) is None:
                continue  # what did not come in stayed in training, which is no part of this result
            came = [held.get((train.name, train.key, flow.source), (0, 0))]
        compared += 1
        if sum(documents for documents, _ in came) != flow.documents_in or _text_is_lost(flow, came):
            wrong.append(flow)
    finding = f"{counted(compared, 'hand-over')} compared, {grouped(len(wrong))} wrong"
    if wrong:
        finding += f"; the first: {wrong[0].source} into {wrong[0].stage.title}"
    return Check("stages-joined", "Does what leaves one stage enter the next?", verdict_of(wrong), finding)


def _text_is_lost(flow: Flow, came: Sequence[tuple[int, int]]) -> bool:
    if not flow.steps or flow.steps[0].payload_bytes or flow.taken_out:
        return False
    return sum(characters for _, characters in came) != flow.steps[0].characters_in


def _manifests(report: Report) -> Check:
    wrong = [stage for stage in report.stages if not _agrees(stage)]
    finding = f"{counted(len(report.stages), 'manifest')} compared with their shards and statistics"
    finding += f"; wrong: {wrong[0].title}" if wrong else ""
    return Check("manifests-agree", "Do manifests, shards and statistics agree?", verdict_of(wrong), finding)


def _agrees(stage: StageView) -> bool:
    rows = stage.manifest["rows"]
    kept = sum(group["documents"] for group in stage.statistics.get("groups", {}).get("source", {}).values())
    texts = (stage.statistics.get("texts") or {}).get("count", 0)
    has_rows = stage.shard_rows == rows and stage.shards == stage.manifest["shards"]
    return has_rows and (not stage.has_text or (kept == rows and texts == rows))


def _outputs(report: Report) -> Check:
    empty = [name for name, stage in report.outputs.items() if not stage.manifest["rows"]]
    finding = f"{counted(len(report.outputs), 'output')}, {grouped(len(empty))} empty"
    return Check("outputs-filled", "Does every output hold documents?", verdict_of(empty), finding)


def _sources(report: Report) -> Check:
    reached = {
        source
        for stage in report.outputs.values()
        for source, group in stage.statistics.get("groups", {}).get("source", {}).items()
        if group["documents"]
    }
    lost = [source for source in report.sources if source not in reached]
    finding = f"{grouped(len(reached))} of {counted(len(report.sources), 'source')} reach an output"
    finding += f"; not {', '.join(lost[:5])}" if lost else ""
    return Check("sources-reach-outputs", "Does every source reach an output?", verdict_of(lost, Verdict.WARN), finding)


def _gaps(flows: Iterable[Flow]) -> Check:
    read = [(flow.source, flow.reading) for flow in flows if flow.reading is not None]
    gaps = sum(reading.count("gaps") for _, reading in read)
    amounts = [
        f"{grouped(reading.amount('gaps', place))} of {grouped(total)} {place_name(place)} of {shortened(source, 60)}"
        for source, reading in read
        for place, total in sorted(reading.totals.items())
        if reading.amount("gaps", place)
    ]
    told = ", ".join(amounts[:5]) + (f" and {grouped(len(amounts) - 5)} more" if len(amounts) > 5 else "")
    finding = counted(gaps, "gap") + (f": {told}" if told else f" in files of {counted(len(read), 'source')}")
    return Check("no-gaps", "Could all files be read to their end?", verdict_of(gaps, Verdict.WARN), finding)


def _quarantine(report: Report, flows: Iterable[Flow]) -> Check:
    lists = [stage for stage in report.stages if stage.manifest["quarantine"]]
    drops = [drop for flow in flows for step in flow.steps for drop in step.drops if drop.reason.startswith(PREFIX)]
    documents = sum(drop.documents for drop in drops) + sum(flow.taken_out for flow in flows)
    finding = f"{counted(documents, 'document')} quarantined: no step could be applied to them"
    question = "Could every document be processed?"
    return Check("quarantine-empty", question, verdict_of(lists or documents, Verdict.WARN), finding)


def _licences(report: Report) -> Check:
    unknown, documents = 0, 0
    for stage in report.outputs.values():
        for row in rights_of(stage).licences:
            documents += row.documents
            unknown += row.documents if row.is_unknown else 0
    finding = f"unknown for {grouped(unknown)} of {counted(documents, 'document')} ({share(unknown, documents)})"
    if tokens := sum(one.read for one in trained_by_licence(report)):
        nobody = sum(one.read for one in trained_by_licence(report) if one.is_unknown)
        finding += f", and for {share(nobody, tokens)} of the tokens that training reads"
    question = "Is the licence of every document known?"
    return Check("licences-known", question, verdict_of(unknown, Verdict.WARN), finding)


def _optouts(report: Report) -> Check:
    question = "Were opt-out signals looked at?"
    answers = [answer for stage in report.outputs.values() for answer in rights_of(stage).optouts]
    unchecked = sum(answer.documents for answer in answers if answer.answer == "not checked")
    total = sum(answer.documents for answer in answers)
    finding = f"{share(unchecked, total)} of answers are “not checked” ({grouped(unchecked)} of {grouped(total)})"
    robots = [answer for answer in answers if answer.signal == "robots_txt"]
    if robots and all(answer.answer == "not checked" for answer in robots):
        finding += "; robots.txt was checked for no document"
    return Check("optout-checked", question, verdict_of(unchecked, Verdict.WARN), finding)


def _personal(report: Report) -> Check:
    missed = unmasked_sources(report)
    sources = counted(len(report.sources), "source")
    finding = f"{grouped(len(report.sources) - len(missed))} of {sources} come to a step that masks it"
    finding += f"; not {', '.join(map(shortened, missed[:5]))}" + (" …" if len(missed) > 5 else "") if missed else ""
    return Check(
        "personal-data-masked", "Is personal data masked in every source?", verdict_of(missed, Verdict.WARN), finding
    )


def _duplicates(report: Report) -> Iterator[Check]:
    stages = [stage for stage in report.stages if stage.is_deduplication or stage.cuts_repeats]
    kinds = ", ".join(dict.fromkeys(str(stage.operation["operation"]) for stage in stages))
    finding = f"{counted(len(stages), 'stage')}: {kinds}" if stages else "no stage removes duplicates"
    question = "Were duplicates looked for?"
    yield Check("deduplicated", question, verdict_of(not stages, Verdict.WARN), finding)
    counts = [stage.statistics.get("duplicates", {}) for stage in stages]
    given_up = sum(count.get("given_up", 0) for count in counts)
    compared = sum(count.get("compared", 0) for count in counts)
    finding = f"{counted(compared, 'pair')} compared, {grouped(given_up)} given up"
    question = "Was every pair that shares a bucket compared?"
    yield Check("pairs-compared", question, verdict_of(given_up, Verdict.WARN), finding)
    if report.recall is not None:
        yield _recall(report.recall)


LUCK: Final = 1 / 30_000
"""So improbable is 4 standard errors below the mean of a normal distribution."""


def _recall(recall: Recall) -> Check:
    points = [(stage, point) for stage in recall.stages for point in stage.points]
    short = [(stage, point) for stage, point in points if point.luck < LUCK]
    finding = f"{counted(sum(p.pairs for _, p in points), 'pair')} measured, {grouped(len(short))} rows fall short"
    if short:
        stage, point = short[0]
        finding += f"; the first: {grouped(point.proposed)} of {grouped(point.pairs)} of similarity {point.low} to "
        finding += f"{point.high} in {shortened(stage.name, 60)}"
    question = "Do the bands propose as many similar pairs as they promise?"
    return Check("recall-measured", question, verdict_of(short), finding)
