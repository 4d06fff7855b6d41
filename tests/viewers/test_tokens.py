"""What a page says about benchmarks, hold-out, caches, plan and runs equals what the store and the log hold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from curate.caches.errors import CacheError
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.recall import Recall
from curate.store import Store
from mixtures.errors import PlanError
from mixtures.plan import Plan
from tests.viewers.parsed import Node, number, parse, tables
from tests.viewers.stores import Made, documents, report, sample, stage
from tests.viewers.token_stores import SHELF, make_token_store, write_run
from viewers import write_report
from viewers.checks import check_report
from viewers.finding_card import finding_card
from viewers.loading import Report, load_report
from viewers.numbers import grouped, share
from viewers.report import render
from viewers.sample_card import Excerpts
from viewers.tokens import Meeting
from viewers.verdict import IDS, Verdict

NEW = [
    "benchmarks-checked",
    "caches-complete",
    "validation-apart",
    "sources-held-out",
    "plan-adds-up",
    "plan-fits-caches",
    "epochs-few",
    "shares-met",
]
Cells = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def root(token_page: Path) -> Node:
    return parse(token_page.read_text("utf-8"))


@pytest.fixture(scope="module")
def cells(root: Node) -> Cells:
    return tables(root)


@pytest.fixture(scope="module")
def loaded(trained: Made, logged: Path) -> Report:
    return load_report(Store(trained.root), trained.folder, [logged])


@pytest.fixture(scope="module")
def plan(trained: Made) -> Plan:
    return Plan.load(trained.result.folder / "plan.json")


def named(made: Made, name: str) -> Dataset:
    (dataset,) = [dataset for dataset in made.result.stages if dataset.name == name]
    return dataset


def ledger(dataset: Dataset) -> list[dict[str, Any]]:
    return [row for batch in dataset.ledger() for row in batch.to_pylist()]


def verdicts(found: Report) -> dict[str, Verdict]:
    return {check.id: check.verdict for check in check_report(found)}


def test_tokens_result_makes_every_check_there_is(trained: Made, logged: Path) -> None:
    found = replace(load_report(Store(trained.root), trained.folder, [logged]), recall=Recall("k", ()))
    assert tuple(check.id for check in check_report(found)) == IDS


def test_tokens_page_has_all_panels_between_verdicts_and_words(root: Node) -> None:
    titles = [h.text for h in root.one("main").all("h2")]
    assert (titles[0], titles[-1]) == ("Verdicts", "Words") and len(set(titles)) == len(titles)
    assert {"Duplicates", "Contamination", "Personal data", "Hold-out", "Tokens"} <= set(titles)
    assert {"Mixture over training", "Loss"} <= set(titles)


def test_tokens_checks_of_a_sound_store_fail_nothing_and_have_stable_ids(loaded: Report) -> None:
    found = verdicts(loaded)
    assert list(found)[-len(NEW) - 1 :] == [*NEW, "runs-of-this-plan"]
    assert Verdict.FAIL not in found.values()
    assert {found[name] for name in NEW[1:6]} == {Verdict.PASS}
    assert found["runs-of-this-plan"] is Verdict.PASS


def test_tokens_outputs_without_datasets_are_what_the_caches_are_made_of(trained: Made, cells: Cells) -> None:
    assert [[row[0], number(row[1])] for row in cells["What came out"][1:]] == [
        ["training", named(trained, "train").rows],
        ["validation", named(trained, "valid").rows],
    ]


def test_tokens_caches_equal_their_descriptions(trained: Made, root: Node, cells: Cells) -> None:
    rows = iter(cells["Token caches"][1:])
    for output in ("training", "validation"):
        opened = trained.result.caches[output].open()
        for cell, cache in opened.items():
            row = next(rows)
            statistics = cache.description.statistics
            assert row[0] == cell
            expected = [cache.documents, statistics["characters"], cache.tokens]
            assert [number(text) for text in row[1:4]] == expected
            assert Fraction(row[5]) == round(Fraction(statistics["bytes"], cache.tokens), 3)
            assert len(cache.text_digests()) == cache.documents
        total = next(rows)
        assert [total[0], number(total[3])] == ["all cells", sum(cache.tokens for cache in opened.values())]
    panel = root.one("section", id="tokens").text
    assert trained.result.caches["training"].open()["web"].tokenizer in panel
    assert str(named(trained, "train").content) in panel


def test_tokens_page_names_what_encoded_and_how_often_it_differed(loaded: Report) -> None:
    product = next(product for product in loaded.products if product.kind == "caches")
    told = {
        "asked": "fall back",
        "used": "tokenizers",
        "why": "fast 1.0 gave 2",
        "compared": {"documents": 7, "differing": 2},
    }
    fell_back = replace(product, manifest={**product.manifest, "backend": told})
    products = tuple(fell_back if one is product else one for one in loaded.products)
    shown = parse(render(replace(loaded, products=products))).one("section", id="tokens").text
    assert (
        "encoded by tokenizers; 7 documents compared with the tokenizers library, 2 with other ids. fast 1.0 gave 2"
        in shown
    )


def test_tokens_page_says_what_encoded_where_nothing_was_compared(loaded: Report) -> None:
    product = next(product for product in loaded.products if product.kind == "caches")
    told = {"asked": "fall back", "used": "tokenizers", "why": "gigatoken is not installed", "compared": {}}
    without = replace(product, manifest={**product.manifest, "backend": told})
    products = tuple(without if one is product else one for one in loaded.products)
    shown = parse(render(replace(loaded, products=products))).one("section", id="tokens").text
    assert "encoded by tokenizers. gigatoken is not installed" in shown


def test_tokens_special_text_is_counted(trained: Made, cells: Cells) -> None:
    rows = cells["Special tokens that stand in texts, encoded as text"][1:]
    hits = {(row[0], row[1]): (number(row[2]), number(row[3])) for row in rows}
    texts = [row["text"] for batch in named(trained, "train").batches(["text"]) for row in batch.to_pylist()]
    holding = [text.count("<|endoftext|>") for text in texts if "<|endoftext|>" in text]
    assert hits["<|endoftext|>", "training, web"] == (len(holding), sum(holding))


def test_tokens_mixture_rows_equal_the_plan(plan: Plan, cells: Cells) -> None:
    rows = [row for row in cells["Components by phase"][1:] if len(row) > 1]
    order = sorted(plan.draws(), key=lambda name: (-plan.draws()[name], name))
    drawn = [plan.component_of(sequence).name for sequence in range(len(plan))]
    for at, segment in enumerate(plan.segments):
        mine = drawn[plan.starts[at] * plan.batch : plan.starts[at + 1] * plan.batch]
        for name in order:
            if not segment.weights.get(name) and name not in mine:
                continue  # neither asked for nor drawn: in no row
            row = rows.pop(0)
            asked = share(segment.weights.get(name, 0), sum(segment.weights.values()))
            assert row[:4] == [name, asked, share(mine.count(name), len(mine)), grouped(mine.count(name))]
    whole = rows
    assert len(whole) == len(order)
    assert [number(row[4]) for row in whole] == [plan.tokens_read()[name] for name in order]
    for row in whole:
        component = plan.components[plan.component_index(row[0])]
        assert number(row[5]) == component.tokens
        assert Fraction(row[6]) == round(Fraction(plan.draws()[row[0]], component.sequences), 2)


def test_tokens_mixture_sums_hold_as_printed(root: Node, plan: Plan) -> None:
    panel = root.one("section", id="mixture")
    lines = [line.text for line in panel.all(class_="sum")]
    assert f"sequences {grouped(len(plan))} = steps × batch {grouped(plan.steps * plan.batch)}" in lines
    for line in lines:
        left, right = (sum(number(n) for n in re.findall(r"\d[\d\u202f]*(?= \+|$)", s)) for s in line.split(" = "))
        assert left == right, line


def test_tokens_mixture_names_plan_and_batches(root: Node, trained: Made, plan: Plan, loaded: Report) -> None:
    panel = root.one("section", id="mixture").text
    assert plan.digest == trained.result.plan and plan.digest in panel
    assert list(loaded.batches) == ["batches 0-4"]
    assert loaded.batches["batches 0-4"] in panel


def test_tokens_mixture_picture_has_a_strip_per_component_and_a_border(root: Node, plan: Plan) -> None:
    (figure,) = root.one("section", id="mixture").all("figure", class_="strips")
    strips = figure.all("svg")
    assert len(strips) == len(plan.components) == 2
    for strip in strips:
        assert len(strip.all("rect")) == 2
        assert len(strip.all(class_="border")) == 1
    assert "steps 0 to" in figure.text


def test_tokens_contamination_equals_the_ledger(trained: Made, root: Node, cells: Cells) -> None:
    dataset = named(trained, "decontaminate")
    dropped = ledger(dataset)
    assert len(dropped) == 2
    (caption,) = [caption for caption in cells if caption.startswith("Found in decontaminate")]
    counted = {(row[0], f"contamination: {row[1]}"): number(row[2]) for row in cells[caption][1:]}
    assert counted == {key: dropped_by(dropped, key) for key in {(row["source"], row["reason"]) for row in dropped}}
    (benchmark,) = cells["Benchmarks looked for"][1:]
    (card,) = [step["card"]["protection"]["<b>ferry"] for step in dataset.manifest["operation"]["steps"]]
    unprotectable = f"{card['short'] + card['plain']}; {card['joined']} more with answer or choices only"
    assert [benchmark[0], *benchmark[1:3], number(benchmark[3])] == ["<b>ferry", str(card["items"]), unprotectable, 2]
    assert card["items"] == 2
    panel = root.one("section", id="contamination")
    assert all(row["id"].hex() in panel.text for row in dropped)
    assert all(row["id"].hex() not in root.one("section", id="samples").text for row in dropped)
    assert "Every benchmark other than <b>ferry: not checked." in panel.text
    marks = ["".join(mark.text for mark in article.all("mark")) for article in panel.all("article")]
    assert len(marks) == 2
    for mark in marks:
        assert mark.startswith("A ferryman rows") and mark.rstrip(".?").endswith("four weeks")
    assert "item 0, question: leak, 100\u202f% of its weight, no word changed, characters " in panel.text


def dropped_by(rows: list[dict[str, Any]], key: tuple[str, str]) -> int:
    return len([row for row in rows if (row["source"], row["reason"]) == key])


def test_tokens_hold_out_equals_the_ledger(trained: Made, cells: Cells) -> None:
    (caption,) = [caption for caption in cells if caption.startswith("Held out by train")]
    dropped = ledger(named(trained, "train"))
    reasons = ("held out", "equal to held-out text", "near duplicate of held-out text")
    for row in cells[caption][1:]:
        mine = [entry for entry in dropped if row[0] in (entry["source"], "all sources")]
        assert [number(text) for text in row[2:5]] == [sum(e["reason"] == r for e in mine) for r in reasons]
    total = cells[caption][-1]
    assert total[0] == "all sources" and number(total[2]) == named(trained, "valid").rows > 0
    assert number(total[4]) > 0
    assert number(total[5]) == named(trained, "train").rows


def test_tokens_loss_rows_equal_the_log(root: Node, cells: Cells) -> None:
    rows = {row[0]: row[1:] for row in cells["Losses of run <1>"][1:]}
    assert rows["training batches"] == ["39", "6.0000", "0", "2.1000", "39", "2.1000", "39"]
    assert rows["web"] == rows[SHELF] == ["2", "6.5000", "0", "4.0000", "40", "4.0000", "40"]
    panel = root.one("section", id="loss")
    assert "1 line without a finite loss left out" in panel.text
    assert len(panel.all("figure", class_="plot")) == 3
    assert all(len(figure.all("path")) == 1 for figure in panel.all("figure"))


def test_tokens_without_a_run_the_page_says_so(trained: Made, tmp_path: Path) -> None:
    path = write_report(Store(trained.root), trained.folder, tmp_path / "report.html")
    assert "No training run was given" in parse(path.read_text("utf-8")).one("section", id="loss").text


def test_tokens_run_on_another_plan_warns(trained: Made, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", "0" * 64, [])
    found = load_report(Store(trained.root), trained.folder, [other])
    assert verdicts(found)["runs-of-this-plan"] is Verdict.WARN
    assert "no: it was trained on another plan" in render(found)


@pytest.mark.parametrize("log", [None, b"not json\n", b'{"step": 1}\n', b'{"kind":"train","step":1}\n', b"[]\n"])
def test_tokens_folder_without_a_readable_run_is_refused(trained: Made, tmp_path: Path, log: bytes | None) -> None:
    if log is not None:
        (tmp_path / "log.jsonl").write_bytes(log)
    with pytest.raises(ConfigurationError, match="holds no training run"):
        load_report(Store(trained.root), trained.folder, [tmp_path])


def test_tokens_run_with_one_point_and_odd_numbers_is_shown(trained: Made, tmp_path: Path) -> None:
    lines = [
        {"kind": "train", "step": 0, "loss": 3, "timing": {}},
        {"kind": "train", "step": 1, "loss": "4", "timing": {}},
        {"kind": "train", "step": 10**400, "loss": 1, "timing": {}},
        {"kind": "train", "step": 2, "loss": 10**400, "timing": {}},
        {"kind": "train", "step": 3, "loss": 2.5, "timing": {}},
        {"kind": "train", "step": 4, "loss": 1e308, "timing": {}},
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines) + '{"kind":"train","step":5,"loss":NaN,"timing":{}}\n'
    (tmp_path / "log.jsonl").write_text(content)
    found = load_report(Store(trained.root), trained.folder, [tmp_path])
    assert found.runs[0].train.steps == (0, 3) and found.runs[0].skipped == 5
    assert "Losses of" in render(found)


def test_tokens_same_store_gives_same_bytes_anywhere(token_page: Path, tmp_path: Path) -> None:
    other = make_token_store(tmp_path / "elsewhere")
    run = write_run(tmp_path / "elsewhere/run <1>", str(other.result.plan), ["web", SHELF])
    moved = write_report(Store(other.root), other.folder, tmp_path / "moved.html", runs=[run])
    assert moved.read_bytes() == token_page.read_bytes()
    assert str(tmp_path) not in moved.read_text("utf-8")


def test_tokens_hostile_names_stay_text(root: Node) -> None:
    tags = {node.tag for node in root.all()}
    assert not tags & {"script", "img", "i", "b "}
    assert SHELF in root.one("section", id="mixture").text
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))


def test_tokens_graph_has_tokenizer_and_caches(root: Node) -> None:
    names = [node.text for node in root.one("section", id="lineage").all("text", class_="name")]
    assert {"train tokenizer", "tokenize", "tokenize valid"} <= set(names)


def broken(loaded: Report, check: str) -> Report:
    """Return `loaded` with what `check` is about made wrong."""
    cells, plan = loaded.cells, loaded.plan
    assert plan is not None
    if check == "caches-complete":
        return replace(loaded, cells=cells[1:])
    if check == "validation-apart":
        return replace(loaded, meeting=Meeting(10, 3, 1))
    return replace(loaded, cells=(replace(cells[0], description=replace(cells[0].description, tokens=1)), *cells[1:]))


@pytest.mark.parametrize("check", ["caches-complete", "validation-apart", "plan-fits-caches"])
def test_tokens_broken_promise_fails_its_check(loaded: Report, check: str) -> None:
    assert verdicts(loaded)[check] is Verdict.PASS
    assert verdicts(broken(loaded, check))[check] is Verdict.FAIL


def test_tokens_validation_that_gains_a_document_on_the_way_fails_the_hand_over(loaded: Report) -> None:
    stages = list(loaded.stages)
    (at,) = [i for i, view in enumerate(stages) if view.name == "valid"]
    step = {"documents_in": 1, "documents_out": 1, "characters_in": 5, "characters_out": 5}
    steps = {"00": {"name": "hold out", "sources": {"web": step}}}
    stages[at] = replace(stages[at], statistics={**stages[at].statistics, "steps": steps})
    assert verdicts(loaded)["stages-joined"] is Verdict.PASS
    assert verdicts(replace(loaded, stages=tuple(stages)))["stages-joined"] is Verdict.FAIL


def test_tokens_texts_in_training_and_validation_are_found(trained: Made) -> None:
    from viewers.tokens import meeting_of

    training = trained.result.caches["training"]
    same = meeting_of({"training": training, "validation": training})
    assert same is not None and same.shared == same.training == same.others > 0
    apart = meeting_of(trained.result.caches)
    assert apart is not None and apart.shared == 0
    assert meeting_of({"training": training}) is None


@pytest.mark.parametrize(("operation", "verdict"), [({}, Verdict.WARN), ({"others": True}, Verdict.WARN)])
def test_tokens_benchmarks_in_no_or_some_branches_warn(operation: dict[str, Any], verdict: Verdict) -> None:
    fields = {"benchmarks": [{"class": "Benchmark", "fields": {"name": "B"}}]}
    inner = {"class": "Decontaminate", "fields": fields}
    transform = {"class": "Switch", "fields": {"others": [inner]}} if operation else {"class": "F", "fields": {}}
    manifest = {"rows": 5, "operation": {"operation": "documents", "steps": [{"name": "s", "transform": transform}]}}
    found = report(stage(manifest=manifest, statistics=documents("web", 5)))
    assert verdicts(found)["benchmarks-checked"] is verdict


def test_tokens_damaged_plan_and_cut_cache_are_refused(tmp_path: Path) -> None:
    made = make_token_store(tmp_path / "in")
    store, target = Store(made.root), tmp_path / "report.html"
    path = made.result.folder / "plan.json"
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"seed":3', b'"seed":4'))
    with pytest.raises(PlanError, match="edited"):
        write_report(store, made.folder, target)
    path.write_bytes(content)
    cache = made.result.caches["training"].place("web").root
    chunk = next(p for p in sorted(cache.rglob("*")) if p.is_file() and p.suffix != ".json")
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(CacheError):
        write_report(store, made.folder, target)
    assert not target.exists()


@pytest.mark.parametrize(
    "evidence",
    [
        None,
        "no json",
        "[]",
        '{"found": 7}',
        '{"found": [1, {"spans": 3, "coverage": "x", "changed": []}]}',
        '{"found": [{"spans": [[-5, 2], [3, 900], [4, 2], ["a", 1], [1]], "coverage": [1, 0]}]}',
        '{"found": [{"benchmark": "<b>", "item": 1, "verdict": "leak", "spans": [[0, 4], [2, 9], [9, 12]]}]}',
    ],
)
def test_tokens_odd_evidence_is_shown_as_far_as_it_goes(evidence: str | None) -> None:
    text = "one two three four"
    html = finding_card(sample(text, evidence=evidence), Excerpts(frozenset())).html
    shown = parse(html)
    assert "".join(node.text for node in shown.all(class_="text")) == text
    assert [mark.text for mark in shown.all("mark")] == (["one ", "two t", "hre"] if "leak" in str(evidence) else [])


def test_tokens_masked_excerpt_is_not_marked_at_wrong_places() -> None:
    found = '{"found": [{"spans": [[0, 5]]}]}'
    masked = sample("write to <email> now", evidence=found) | {"characters": 40}
    assert not parse(finding_card(masked, Excerpts(frozenset())).html).all("mark")
