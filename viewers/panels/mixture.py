"""Mixture over training: weights by step, and for each phase and component what was asked and what the plan draws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from mixtures.plan import Plan
from viewers.budget import LONG_ROWS, ROWS
from viewers.curves import Stretch, strip
from viewers.identities import identity_line
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, rounded, share
from viewers.panels.panel import Panel
from viewers.panels.read_values import read_parts
from viewers.provenance import ProvenanceView
from viewers.settings import decimal_of
from viewers.shares import PhaseShares, Share, is_met, phases_of, plan_identities
from viewers.tables import Group, Mark, code, facts, left_out, mark, table
from viewers.visible import shortened


def mixture(report: Report) -> Panel | None:
    """Return the panel; None for a result without a plan."""
    plan = report.plan
    if plan is None:
        return None
    phases = phases_of(plan)
    drawn, order = plan.draws(), [component.name for component in plan.components]
    order.sort(key=lambda name: (-drawn[name], name))
    body = join(
        [
            _opening(plan),
            _picture(phases[:ROWS], order[:LONG_ROWS]),
            _table(plan, phases[:ROWS], order[:LONG_ROWS]),
            element(
                "p",
                "Asked and drawn are shares of sequences. Epochs are how often a component is read; above 1 it is "
                "repeated: 1.50 is once, and half of it again.",
                class_="note",
            ),
            left_out(max(len(order) - LONG_ROWS, 0), "components"),
            left_out(max(len(phases) - ROWS, 0), "phases"),
            _why(plan, phases, report.provenance),
            *read_parts(report, plan),
            _sums(plan, phases),
            _facts(report, plan),
        ]
    )
    lede = (
        "Look for a share that is not the one asked for, and for components read more than a few times: text that is "
        "read again and again teaches less each time."
    )
    return Panel("mixture", "Mixture over training", lede, body)


def _opening(plan: Plan) -> Markup:
    filled = plan.steps * plan.batch * plan.sequences.length - sum(plan.tokens_read().values())
    sentence = (
        f"{counted(plan.steps, 'step')} of {counted(plan.batch, 'sequence')} of {grouped(plan.sequences.length)} "
        f"tokens: {grouped(sum(plan.tokens_read().values()))} tokens read from "
        f"{counted(len(plan.components), 'component')} in {counted(len(plan.segments), 'phase')}. "
        + (f"{grouped(filled)} places of these sequences are padding. " if filled else "")
    )
    return element("p", sentence, mark(Mark.EXACT), class_="opening")


def _picture(phases: Sequence[PhaseShares], order: Sequence[str]) -> Markup:
    found = [{share.component.name: share for share in phase.shares} for phase in phases]
    ratios = [
        pair for p in phases for s in p.shares for pair in ((s.weight, p.weights), (s.drawn, p.length)) if pair[1]
    ]
    most = max(ratios, key=lambda pair: Fraction(*pair))
    items = []
    for name in order:
        mine = [(phase, shares[name]) for phase, shares in zip(phases, found, strict=True)]
        stretches = [Stretch(p.first, p.stop, s.weight, p.weights, s.drawn, p.length) for p, s in mine]
        value = " → ".join(share(s.drawn, p.length) for p, s in mine[:4]) + (" → …" if len(mine) > 4 else "")
        label, shown = element("span", shortened(name), class_="label"), element("span", value, class_="value")
        items.append(element("li", label, strip(stretches, most), shown))
    named = [f"{shortened(p.name, 40)}: steps {grouped(p.first)} to {grouped(p.stop - 1)}" for p in phases]
    keys = [element("span", element("span", class_=f"key {tone}"), text) for tone, text in LEGEND]
    caption = element("figcaption", "Share of each component by step", element("span", *keys, class_="legend"))
    scale = f"All strips have one scale, {share(*most)} at the top; at the right the shares drawn, phase by phase. "
    note = element("p", scale, "Phases, left to right: ", "; ".join(named), ".", class_="note")
    return element("figure", caption, element("ul", *items), note, class_="bars strips")


LEGEND = (("dropped", "asked"), ("kept", "drawn"))


def _table(plan: Plan, phases: Sequence[PhaseShares], order: Sequence[str]) -> Markup:
    groups = []
    for phase in phases:
        mine = {share.component.name: share for share in phase.shares}
        cut = "" if phase.length == phase.planned else f", cut from {counted(phase.planned, 'sequence')}"
        title = f"{shortened(phase.name)}: {counted(phase.stop - phase.first, 'step')}{cut}"
        there = [name for name in order if mine[name].weight or mine[name].drawn]
        out = len(order) - len(there)
        title += f"; {counted(out, 'component')} neither asked for nor drawn" if out else ""
        groups.append(Group(title, [_row(phase, mine[name]) for name in there]))
    if len(phases) > 1:
        groups.append(Group("all phases", _whole(plan, order)))
    columns = ("Component", "Asked", "Drawn", "Sequences", "Tokens read", "Tokens available", "Epochs")
    return table("Components by phase", Mark.EXACT, columns, groups)


def _row(phase: PhaseShares, one: Share) -> list[Child]:
    return [
        shortened(one.component.name),
        share(one.weight, phase.weights),
        share(one.drawn, phase.length),
        grouped(one.drawn),
        grouped(one.tokens),
        grouped(one.component.tokens),
        _epochs(one.drawn, one.component.sequences),
    ]


def _why(plan: Plan, phases: Sequence[PhaseShares], made: ProvenanceView | None) -> Markup | None:
    """Return why shares drawn are not those asked for, where they are not: the cap, and what it holds most."""
    missed = list(dict.fromkeys(s.component.name for p in phases for s in p.shares if s.weight and not is_met(p, s)))
    if not missed:
        return None
    sentence = (
        f"Asked and drawn differ by more than a tenth for {', '.join(map(shortened, missed[:NAMED]))}"
        f"{' and others' if len(missed) > NAMED else ''}. A cap on repeats, over all phases together, holds a "
        "component that would be read more often; what it leaves free goes to the others, by their weights, or the "
        f"plan stops (then=). {_cap(plan, made)}"
    )
    return element("p", sentence)


def _cap(plan: Plan, made: ProvenanceView | None) -> str:
    """Return the cap of the recipe and which components it holds, or which is read most where that is not known."""
    drawn = plan.draws()
    read = {p.name: Fraction(drawn[p.name], p.sequences) for p in plan.components if p.sequences}
    if made is None or made.told["mixture"] is None:
        most = max(read, key=lambda name: read[name])
        return f"Its size is not recorded; most often read is {shortened(most)}, {_times(read[most])}."
    repeats = made.told["mixture"]["repeats"]
    if repeats is None:
        return "The recipe asks for no cap."
    epochs, then = (repeats["fields"][name] for name in ("epochs", "then"))
    cap = decimal_of(epochs)
    held = [p.name for p in plan.components if p.sequences and drawn[p.name] >= int(Fraction(cap) * p.sequences)]
    names = ", ".join(f"{shortened(name)} ({_times(read[name])})" for name in held[:NAMED])
    names += " and others" if len(held) > NAMED else ""
    return f"The recipe’s cap: AtMost({cap}, then={then!r}). It holds {names or 'no component'}."


def _times(epochs: Fraction) -> str:
    return f"{fixed(rounded(epochs.numerator, epochs.denominator, 2), 2)} times"


NAMED: Final = 8
"""Components named in a sentence."""


def _whole(plan: Plan, order: Sequence[str]) -> list[list[Child]]:
    drawn, tokens = plan.draws(), plan.tokens_read()
    components = {component.name: component for component in plan.components}
    return [
        [
            shortened(name),
            "–",
            share(drawn[name], len(plan)),
            grouped(drawn[name]),
            grouped(tokens[name]),
            grouped(components[name].tokens),
            _epochs(drawn[name], components[name].sequences),
        ]
        for name in order
    ]


def _epochs(drawn: int, sequences: int) -> str:
    return fixed(rounded(drawn, sequences, 2), 2) if sequences else "–"


def _sums(plan: Plan, phases: Sequence[PhaseShares]) -> Markup:
    where = ["plan", "plan", "plan", *(shortened(phase.name, 60) for phase in phases)]
    found = list(zip(where, plan_identities(plan, phases), strict=True))
    lines = [identity_line(name, identity) for name, identity in found[:ROWS]]
    title = element("p", "The sums ", mark(Mark.EXACT), class_="sums-title")
    return element("div", title, element("ul", *lines, class_="identities"), class_="sums")


def _facts(report: Report, plan: Plan) -> Markup:
    held = [f"{shortened(v.name)} ({counted(v.tokens, 'token')})" for v in plan.validation[:ROWS]]
    positions = len(plan) * plan.sequences.length
    pairs: list[tuple[str, Child]] = [
        ("Plan", code(plan.digest)),
        *((shortened(name).capitalize(), code(digest)) for name, digest in list(report.batches.items())[:ROWS]),
        ("Steps", grouped(plan.steps)),
        ("Batch", counted(plan.batch, "sequence")),
        ("Sequence", f"{grouped(plan.sequences.length)} tokens"),
        ("Padding", f"{grouped(positions - sum(plan.tokens_read().values()))} of {counted(positions, 'position')}"),
        ("Seed", str(plan.seed)),
        ("Tokenizer", code(plan.tokenizer)),
        ("Held-out caches", ", ".join(held) or "none"),
    ]
    pairs += [("Agrees with plan", f"{past.plan} up to step {grouped(past.steps)}") for past in plan.earlier[:ROWS]]
    return facts(pairs)
