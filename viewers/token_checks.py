"""Checks of benchmarks, caches, plan and runs, computed from manifests, statistics and text digests."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from mixtures.plan import Plan
from viewers.contamination import WIDELY_USED, guards_of, not_looked_for, unchecked_sources
from viewers.flows import all_flows, held_out
from viewers.loading import Report
from viewers.numbers import counted, grouped, share
from viewers.runs import trains_on
from viewers.shares import PhaseShares, Share, is_met, phases_of, plan_identities
from viewers.verdict import Check, Verdict, verdict_of
from viewers.visible import shortened

EPOCHS: Final = 4
"""Times that a text may be read before another reading is worth clearly less (Muennighoff et al. 2023, §5)."""


def check_tokens(report: Report) -> Iterator[Check]:
    """Yield the checks: that of benchmarks always, the others where there are caches, a plan or runs."""
    yield _benchmarks(report)
    if report.cells:
        yield _caches(report)
    if report.plan is not None:
        yield _apart(report)
        yield _held_out(report)
        yield _plan(report.plan)
        yield _plan_caches(report, report.plan)
        yield _epochs(report.plan)
        yield _shares(report.plan)
    if report.runs:
        yield _runs(report)


def _benchmarks(report: Report) -> Check:
    names = list(dict.fromkeys(b["name"] for guard in guards_of(report) for b in guard.benchmarks))
    missed = unchecked_sources(report) if names else []
    known = len(WIDELY_USED) - len(not_looked_for(names))
    finding = (
        f"{counted(len(names), 'benchmark')}: {', '.join(map(shortened, names[:5]))}; no other is checked: "
        f"{grouped(known)} of {len(WIDELY_USED)} that are widely used"
    )
    if not names:
        finding = "no stage looks for benchmarks: none is checked"
    finding += f"; no document of {', '.join(map(shortened, missed[:5]))} was checked" if missed else ""
    branches = any(not guard.is_whole for guard in guards_of(report))
    finding += "; in some branches of a Switch only" if branches else ""
    question = "Were benchmarks looked for in every source, and all that are widely used?"
    wrong = missed or branches or known < len(WIDELY_USED)
    return Check("benchmarks-checked", question, verdict_of(wrong, Verdict.WARN), finding)


def _caches(report: Report) -> Check:
    rows = {(stage.name, stage.key): stage.manifest["rows"] for stage in report.stages}
    held: dict[tuple[str, str], dict[str, int]] = {}
    for cell in report.cells:
        by_output = held.setdefault(cell.dataset, {})
        by_output[cell.output] = by_output.get(cell.output, 0) + cell.description.documents
    outputs = [(name, total, rows.get(dataset, 0)) for dataset, found in held.items() for name, total in found.items()]
    wrong = [f"{shortened(name)} {grouped(n)} of {grouped(of)}" for name, n, of in outputs if n != of]
    documents = sum(total for _, total, _ in outputs)
    finding = f"{counted(documents, 'document')} in {counted(len(report.cells), 'cache')}"
    finding += f"; wrong: {', '.join(wrong[:5])}" if wrong else ""
    return Check("caches-complete", "Is every document in exactly one cache?", verdict_of(wrong), finding)


def _apart(report: Report) -> Check:
    question = "Do training and validation share no text?"
    meeting = report.meeting
    if meeting is None:
        return Check("validation-apart", question, Verdict.WARN, "nothing is held out to validate on")
    finding = (
        f"{counted(meeting.training, 'distinct text')} to train on, {grouped(meeting.others)} held out, "
        f"{grouped(meeting.shared)} in both"
    )
    return Check("validation-apart", question, verdict_of(meeting.shared), finding)


def _held_out(report: Report) -> Check:
    flows = [flow for flow in all_flows(report) if flow.stage.holds_out and flow.stage.part == "train"]
    missed = [flow.source for flow in flows if flow.documents_in and not held_out(flow)[0]]
    finding = f"{grouped(len(flows) - len(missed))} of {counted(len(flows), 'source')}"
    finding += f"; nothing of {', '.join(map(shortened, missed[:5]))}" if missed else ""
    question = "Is something of every source held out?"
    return Check("sources-held-out", question, verdict_of(missed or not flows, Verdict.WARN), finding)


def _plan(plan: Plan) -> Check:
    found = plan_identities(plan, phases_of(plan))
    wrong = [identity for identity in found if not identity.holds]
    finding = f"{counted(len(found), 'sum')} checked, {grouped(len(wrong))} wrong"
    return Check("plan-adds-up", "Do draws of all components add up to steps × batch?", verdict_of(wrong), finding)


def _plan_caches(report: Report, plan: Plan) -> Check:
    made = {(c.description.content, c.description.tokens, c.description.tokenizer) for c in report.cells}
    found = [(part.name, part.cache, part.tokens) for part in plan.components]
    found += [(part.name, part.cache, part.tokens) for part in plan.validation]
    wrong = [name for name, cache, tokens in found if (cache, tokens, plan.tokenizer) not in made]
    finding = f"{counted(len(found), 'cache')} named by the plan, {grouped(len(wrong))} not in this result"
    finding += f"; the first: {shortened(wrong[0])}" if wrong else ""
    return Check("plan-fits-caches", "Is the plan about the caches of this result?", verdict_of(wrong), finding)


def _epochs(plan: Plan) -> Check:
    drawn, parts = plan.draws(), plan.components
    often = [part.name for part in parts if drawn[part.name] > EPOCHS * part.sequences]
    finding = f"{grouped(len(often))} of {counted(len(parts), 'component')} more than {EPOCHS} times"
    finding += f": {', '.join(map(shortened, often[:5]))}" if often else ""
    question = f"Is no text read more than {EPOCHS} times?"
    return Check("epochs-few", question, verdict_of(often, Verdict.WARN), finding)


def _shares(plan: Plan) -> Check:
    shares = [(phase, one) for phase in phases_of(plan) for one in phase.shares if one.weight]
    missed = [(phase, one) for phase, one in shares if not is_met(phase, one)]
    finding = f"{grouped(len(missed))} of {counted(len(shares), 'share')} off by more than a tenth of what was asked"
    missed.sort(key=lambda pair: Fraction(pair[1].drawn * pair[0].weights, pair[1].weight * max(pair[0].length, 1)))
    finding += f": {', '.join(_share(*pair) for pair in missed[:5])}" if missed else ""
    finding += f" and {grouped(len(missed) - 5)} more" if len(missed) > 5 else ""
    question = "Is each component drawn as often as it was asked for?"
    return Check("shares-met", question, verdict_of(missed, Verdict.WARN), finding)


def _share(phase: PhaseShares, one: Share) -> str:
    name, where = shortened(one.component.name, 40), shortened(phase.name, 40)
    return f"{name} in {where} {share(one.drawn, phase.length)} instead of {share(one.weight, phase.weights)}"


def _runs(report: Report) -> Check:
    other = [shortened(run.name) for run in report.runs if not trains_on(report.plan, run)]
    finding = f"{counted(len(report.runs), 'run')}, {grouped(len(other))} on another plan"
    finding += f": {', '.join(other[:5])}" if other else ""
    question = "Were the runs trained on this plan?"
    return Check("runs-of-this-plan", question, verdict_of(other, Verdict.WARN), finding)
