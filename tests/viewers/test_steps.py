"""The step inspector works out in the page what the loader reads."""

from __future__ import annotations

import csv
import random
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest

from curate.commands.tokens import documents_in
from curate.store import Store
from mixtures import Mixture, Phase, Plan, explain
from mixtures.explain import drawn
from mixtures.packings import packings_of
from mixtures.plan_fields import Component, Segment
from mixtures.schedule import Schedule
from mixtures.sequences import Chunks, Packed
from tests.viewers.browser import Browser, Opened
from tests.viewers.parsed import Node, parse
from tests.viewers.stores import HOSTILE, Made, report, stage
from tests.viewers.token_stores import SHELF
from viewers.loading import load_report
from viewers.reads import Reads, listed_name, reads_of
from viewers.report import render
from viewers.visible import HIDDEN

STEPS = 10_000
ROWS = """steps => steps.flatMap(step => curate.explain(step).map((
    {sequence, component, epoch, chunk, spans: [[start, stop]]}
) => [sequence, component, epoch, chunk, start, stop].join(' ')))"""

READ_BY = "id => [...curate.seen(id).rows].map(r => [r.step, r.row, r.epoch, r.chunk].map(Number))"


def large_plan() -> Plan:
    """Return a plan of 10,000 steps: tokens beyond 2^53, components of one sequence, a phase cut short, odd names."""
    length = 1 << 14
    sizes = [1, 2, 3, 200, 255, 256, 257, 5000, (1 << 40) - 1, 1 << 40, 10**9]
    names = ["n", "__proto__", "10", "2", "\U0001f600", "\uffee", *HOSTILE][: len(sizes)]
    components = tuple(
        Component(name, "c" * 64, size * length - place * 7, size)
        for place, (name, size) in enumerate(zip(names, sizes, strict=True))
    )
    choose = random.Random(5)
    counts = [{name: choose.randrange(1, 3000) for name in names[first:]} for first in (0, 3, 7)]
    totals = [sum(count.values()) for count in counts]
    counts[2][names[-1]] += 4 * STEPS
    rest = 4 * STEPS - totals[0] // 4 * 4 - totals[1] // 8 * 4
    lengths = [totals[0] // 4 * 4, totals[1] // 8 * 4, rest]
    segments = tuple(
        Segment(phase, 1, dict.fromkeys(count, 1), count, sum(count.values()), length)
        for phase, count, length in zip(("a", "b", "<c>"), counts, lengths, strict=True)
    )
    return Plan((1 << 63) + 1, 4, Chunks(length), "t" * 64, 100, 0, components, segments)


@pytest.fixture
def inspector(browser: Browser, token_page: Path) -> Opened:
    return browser.open(token_page, at="#step-3")


@pytest.mark.browser
def test_inspector_equals_explain_on_ten_thousand_steps(browser: Browser, tmp_path: Path) -> None:
    plan = large_plan()
    path = tmp_path / "page.html"
    path.write_text(render(replace(report(stage()), plan=plan, reads=Reads((), {}))), "utf-8")
    assert plan.steps == STEPS
    found = np.array([row.split() for row in browser.open(path).page.evaluate(ROWS, list(range(STEPS)))], np.int64)
    draws = plan.draw(np.arange(len(plan)))
    assert (found[:, 0] == np.arange(len(plan))).all()
    for column, values in enumerate((draws.components, draws.epochs, draws.chunks), 1):
        assert (found[:, column] == values).all()
    assert found[:, 5].max() > 1 << 53
    for step in (0, 77, STEPS - 1):
        rows = [(r.sequence, r.epoch, r.chunk, r.start, r.stop) for r in explain(plan, step).rows]
        assert [(row[0], *row[2:]) for row in found[step * 4 : step * 4 + 4].tolist()] == rows


@pytest.mark.browser
def test_inspector_names_the_documents_of_every_step(inspector: Opened, trained: Made) -> None:
    plan = Plan.load(trained.root / trained.folder / "plan.json")
    cells = trained.result.caches["training"].open()
    found = inspector.evaluate(
        f"Array.from({{length: {plan.steps}}}, (_, s) => curate.explain(s).map(r => r.documents))"
    )
    for step in range(plan.steps):
        rows = explain(plan, step).rows
        assert found[step] == [documents_in(cells[row.component], row.start, row.stop) for row in rows]


@pytest.mark.browser
def test_inspector_of_packed_sequences_equals_explain_and_drawn(
    browser: Browser, trained: Made, tmp_path: Path
) -> None:
    cells = trained.result.caches["training"].open()
    phase = Phase("main", tokens=30_000, weights=dict.fromkeys(cells, 1))
    plan = Mixture(cells, phase, sequences=Packed(96), repeats=None, batch=8, seed=9).compile(cells)
    packings = packings_of(plan, cells)
    loaded = load_report(Store(trained.root), trained.folder)
    path = tmp_path / "packed.html"
    path.write_text(render(replace(loaded, plan=plan, reads=reads_of(plan, cells, packings))), "utf-8")
    opened = browser.open(path, at="#step-1")
    assert opened.noise == [] and opened.page.locator("#inspected tbody tr").count() == 8
    found = opened.evaluate(f"Array.from({{length: {plan.steps}}}, (_, s) => curate.explain(s).map(r => r.documents))")
    for step in range(plan.steps):
        for row, ids in zip(explain(plan, step, packings).rows, found[step], strict=True):
            assert ids == [i for span in row.spans for i in documents_in(cells[row.component], *span)]
    cache = cells["web"]
    (identity,) = (bytes(i).hex() for i in cache.ids(3, 4))
    expected = [[d.step, d.row, d.epoch, d.chunk] for d in drawn(plan, "web", *map(int, cache.starts[3:5]), packings)]
    assert opened.page.evaluate(READ_BY, identity) == expected != []


@pytest.mark.browser
def test_inspector_finds_the_steps_that_read_a_document(inspector: Opened, trained: Made) -> None:
    plan = Plan.load(trained.root / trained.folder / "plan.json")
    for name, cache in trained.result.caches["training"].open().items():
        for document in (0, cache.documents // 2, cache.documents - 1):
            (identity,) = (bytes(i).hex() for i in cache.ids(document, document + 1))
            span = (int(cache.starts[document]), int(cache.starts[document + 1]))
            expected = [[d.step, d.row, d.epoch, d.chunk] for d in drawn(plan, name, *span)]
            assert inspector.page.evaluate(READ_BY, identity) == expected != []


@pytest.mark.browser
def test_inspector_is_used_by_keyboard_and_has_addresses(browser: Browser, token_page: Path) -> None:
    opened = browser.open(token_page, at="#step-3")
    page = opened.page
    assert page.inner_text("#inspected caption").startswith("Step 3, phase main")
    page.fill("#step-number", "1 000 000")
    page.press("#step-number", "Enter")
    assert "Steps go from 0 to" in page.inner_text("#inspected")
    page.fill("#step-number", "4")
    page.click("#step-on")
    assert page.inner_text("#inspected caption").startswith("Step 5,") and opened.evaluate("location.hash") == "#step-5"
    identity = page.locator("#inspected .ids code").first.inner_text()
    page.fill("#document-id", identity.upper())
    page.press("#document-id", "Enter")
    assert "5" in page.locator("#inspected tbody th").all_inner_texts()
    assert opened.evaluate("location.hash") == f"#document-{identity}"
    page.fill("#document-id", '"><img src=x onerror=alert(1)>')
    page.click("#show-document")
    assert "No document with this id" in page.inner_text("#inspected") and opened.noise == []
    assert SHELF in page.inner_text("#table-steps-what-the-first-step-of-each-phase-reads")


@pytest.mark.browser
def test_inspector_shows_hostile_names_of_components_and_phases_as_text(browser: Browser, tmp_path: Path) -> None:
    names = [*HOSTILE, "x" * 9_000, "\u0301" * 10_000, '=1+2,\n"quoted", a,b']
    components = tuple(Component(name, "c" * 64, 640, 10) for name in names)
    once = dict.fromkeys(names, 1)
    segment = Segment(HOSTILE[0] + "\u202e", 1, once, once, len(names), len(names))
    plan = Plan(1, len(names), Chunks(64), "t" * 64, 100, 0, components, (segment,))
    borders = {at: ((0, f"{at:032x}"), (320, f"{at + 64:032x}")) for at in range(len(names))}
    path = tmp_path / "page.html"
    shown = replace(report(stage()), plan=plan, reads=Reads((), borders))
    path.write_text(render(shown), "utf-8")
    opened = browser.open(path, 320, at="#step-0")
    assert opened.noise == [] and opened.overflow <= 0
    text = opened.page.inner_text("#inspected")
    assert opened.page.locator("#inspected tbody tr").count() == len(names) and "[U+202E]" in text
    assert HIDDEN.search(text.replace("\r", "\0")) is None and len(text) < 20_000
    assert opened.evaluate("document.scripts.length + document.images.length") == 1
    found = opened.evaluate("curate.explain(0).map(row => [row.name, row.documents.length])")
    assert [name for name, _ in found] == [plan.component_of(i).name for i in range(len(names))]
    assert all(number == 1 for _, number in found)


def panel(page: Path) -> Node:
    return parse(page.read_text("utf-8")).one("section", id="steps")


def test_inspector_holds_the_plan_and_the_borders(token_page: Path, trained: Made) -> None:
    links: dict[Any, str] = {
        a.attributes.get("download"): str(a.attributes["href"]) for a in panel(token_page).all("a")
    }
    plan = (trained.root / trained.folder / "plan.json").read_bytes()
    assert b64decode(links["plan.json"].partition(",")[2]) == plan
    rows = list(csv.reader(unquote(links["documents.csv"].partition(",")[2]).splitlines()))[1:]
    cells = trained.result.caches["training"].open()
    names = [component.name for component in Plan.from_json(plan.decode()).components]
    expected = [
        [str(number), listed_name(name), str(start), bytes(identity).hex()]
        for number, name in enumerate(names)
        for start, identity in zip(cells[name].starts, cells[name].ids(0, cells[name].documents), strict=False)
    ]
    assert rows == expected


def test_inspector_lists_documents_of_the_smallest_components_within_its_budget(trained: Made) -> None:
    plan = Plan.load(trained.root / trained.folder / "plan.json")
    cells = trained.result.caches["training"].open()
    small, large = sorted(cells, key=lambda name: cells[name].documents)
    limit = cells[small].documents * (46 + len(quote(listed_name(small))))
    assert list(reads_of(plan, cells, limit=limit).borders) == [plan.component_index(small)]
    assert reads_of(plan, cells, limit=0).borders == {}
    assert len(reads_of(plan, cells).borders[plan.component_index(large)]) == cells[large].documents
    loaded = load_report(Store(trained.root), trained.folder)
    html = render(replace(loaded, reads=reads_of(plan, cells, limit=limit)))
    assert "1 list of documents, of the largest component," in html


def test_schedule_that_a_page_rebuilds_has_no_ties_left_to_chance() -> None:
    schedule = Schedule((3, 3, 3, 3, 6, 6))
    assert [int(c) for c in schedule.draw(np.arange(24))[0]].count(4) == 6
