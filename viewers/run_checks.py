"""Health checks of a training run, from its log alone; each has an id that stays the same."""

from __future__ import annotations

from collections.abc import Sequence

from trainers.health import divergence, goodput, stalls
from viewers.numbers import counted, grouped
from viewers.run_view import RunPage
from viewers.verdict import Check, Verdict, verdict_of

LEAST_GOODPUT = 0.8


def check_run(run: RunPage) -> list[Check]:
    """Return all checks, in a fixed order."""
    return [
        _finite(run),
        _spikes(run),
        _converging(run),
        _stalls(run),
        _repeated(run),
        _environment(run),
        _kills(run),
        _goodput(run),
        _history(run),
        _records(run),
    ]


def _finite(run: RunPage) -> Check:
    reasons = [one.ended for one in run.sessions if "TrainingError" in one.ended]
    finding = reasons[-1] if reasons else f"{counted(len(run.train), 'step')}, all losses and gradient norms finite"
    return Check("loss-finite", "Is every loss a number?", verdict_of(reasons), finding)


def _spikes(run: RunPage) -> Check:
    steps = _steps([spike.step for spike in run.spikes])
    finding = f"{counted(len(run.spikes), 'spike')} {steps}".strip()
    return Check("no-spikes", "Does the loss stay near those before it?", verdict_of(run.spikes, Verdict.WARN), finding)


def _converging(run: RunPage) -> Check:
    found = divergence(run.train)
    finding = "the last steps are about the best"
    if found:
        finding = f"the last steps have a median loss of {found[0]:.3f}, the best had {found[1]:.3f}"
    return Check("not-diverged", "Is the loss about as low as it was?", verdict_of(found), finding)


def _stalls(run: RunPage) -> Check:
    found = stalls(run.train)
    finding = f"{counted(len(found), 'step')} took more than five times as long as those before"
    if found:
        longest = max(found, key=lambda stall: stall[1])
        finding += (
            f" {_steps([step for step, _, _ in found])}; the longest {longest[1]:.1f} s instead of {longest[2]:.1f} s"
        )
    if run.ended == "silent":
        finding += f"; the log has been silent for {(run.now - run.heard) / 60:.0f} minutes"
    wrong = found or run.ended == "silent"
    return Check("no-stalls", "Does every step take about as long?", verdict_of(wrong, Verdict.WARN), finding)


def _repeated(run: RunPage) -> Check:
    log = run.own.log
    finding = f"{counted(log.repeated, 'step')} made again, {grouped(len(log.disagreed))} of them with another loss"
    finding += f" {_steps(list(log.disagreed))}" if log.disagreed else ""
    question = "Did steps that were made again come to the same loss?"
    return Check("repeats-agree", question, verdict_of(log.disagreed), finding)


def _environment(run: RunPage) -> Check:
    changed = [(line["step"], line["changed"]) for line in run.own.log.starts if line.get("changed")]
    finding = f"{counted(len(run.own.log.starts), 'start')}, all where the run began"
    if changed:
        finding = "; ".join(f"from step {grouped(step)}: {', '.join(map(str, what))}" for step, what in changed[:5])
    question = "Was it resumed where equal bits are promised?"
    return Check("same-environment", question, verdict_of(changed, Verdict.WARN), finding)


def _kills(run: RunPage) -> Check:
    killed = [one for one in run.sessions if one.ended == "killed"]
    lost = sum(one.lost for one in run.sessions)
    finding = f"{counted(len(run.sessions), 'session')}, {counted(len(killed), 'kill')}, {counted(lost, 'step')} lost"
    return Check("not-killed", "Did every session end in order?", verdict_of(killed, Verdict.WARN), finding)


def _goodput(run: RunPage) -> Check:
    found = goodput(run.lines)
    finding = "no step yet" if found is None else f"{found:.1%} of wall time went into steps that count"
    low = found is not None and found < LEAST_GOODPUT
    question = f"Does at least {LEAST_GOODPUT:.0%} of the time count?"
    return Check("goodput", question, verdict_of(low, Verdict.WARN), finding)


def _history(run: RunPage) -> Check:
    finding = run.problem or f"{counted(len(run.segments), 'segment')}, each with the state that the next began from"
    return Check("history-whole", "Are all runs that it branched from there?", verdict_of(run.problem), finding)


def _records(run: RunPage) -> Check:
    wrong = [run.judged.problem] if run.judged is not None and run.judged.problem else []
    if run.broken_notes:
        wrong.append(f"{counted(run.broken_notes, 'line')} of the diary not as written")
    question = "Are declaration, forecast and notes as they were written?"
    return Check("records-whole", question, verdict_of(wrong), "; ".join(wrong) or "none was changed")


def _steps(steps: Sequence[int]) -> str:
    if not steps:
        return ""
    shown = ", ".join(grouped(step) for step in steps[:8]) + (" …" if len(steps) > 8 else "")
    return f"(at step {shown})"
