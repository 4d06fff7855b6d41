"""The recipes of docs/recipes run from small made-up inputs to batches, each as a user would run it."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate.command_line import main
from curate.run import Result, run
from curate.upkeep.verify import verify
from examples.web_archive import gzip_member, response_record
from mixtures import Loader, Plan
from transforms.language_model import default_model
from transforms.url_lists import URLList

FOLDER = Path(__file__).parents[2] / "docs" / "recipes"
SMALL = {"vocabulary": 300, "held_out": 3_000, "tokens": 4096.0, "length": 64, "batch": 8}
QUESTION = "How many red apples does the careful farmer carry home when nine baskets hold seven apples each?"
TEMPLATES = {
    "en": "The {} of the {} has to {} with a {} and that {} will {} to the {} of every {}.",
    "de": "Der {} und die {} haben in der {} nicht nur das {}, sondern auch {} mit dem {} von {} auf die {}.",
    "fr": "Le {} de la {} est dans une {} avec les {} et il faut que {} soit pour {} sur le {} des {}.",
}
SOUNDS = (
    "mar",
    "ten",
    "lor",
    "vis",
    "gar",
    "pel",
    "don",
    "sil",
    "ber",
    "kan",
    "rim",
    "tol",
    "wes",
    "hul",
    "fan",
    "jor",
)


@pytest.fixture(autouse=True)
def model() -> None:
    if not default_model().exists():
        pytest.skip(f"{default_model()} is not there: curate fetch lid")


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    item = {"question": QUESTION, "answer": "Nine baskets of seven apples are 9 * 7 = 63 apples. #### 63"}
    (folder / "gsm8k.jsonl").write_text(json.dumps(item) + "\n")
    return folder


def text(seed: int, language: str = "en", lines: int = 12) -> str:
    """Return a made-up text that the filters keep, different for each seed."""
    draw = random.Random(f"{language} {seed}")
    slots = TEMPLATES[language].count("{}")
    return "\n".join(
        TEMPLATES[language].format(*("".join(draw.choices(SOUNDS, k=2)) for _ in range(slots))) for _ in range(lines)
    )


def english(count: int, first: int = 0) -> list[str]:
    """Return texts, of which the last two are a near duplicate of the first and one with an item of a benchmark."""
    texts = [text(first + number) for number in range(count)]
    return [*texts, f"{texts[0]}\nOne more sentence.", f"{text(first + count)}\n{QUESTION}\n{text(first + count + 1)}"]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"recipe_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


def write_lines(root: Path, texts: Sequence[str]) -> Path:
    root.mkdir(parents=True)
    rows = [{"text": one, "url": f"https://site{number % 7}.example/{number}"} for number, one in enumerate(texts)]
    (root / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def conversion(week: str, number: int, body: str) -> bytes:
    """Return a record of a WET file."""
    content = body.encode()
    headers = {
        "WARC-Type": "conversion",
        "WARC-Record-ID": f"<urn:uuid:00000000-0000-4000-8000-{week[1:]:0>4}{number:08}>",
        "WARC-Date": "2026-01-01T00:00:00Z",
        "WARC-Target-URI": f"https://site.example/{week}/{number}",
        "Content-Type": "text/plain",
        "Content-Length": str(len(content)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return gzip_member(b"WARC/1.0\r\n" + lines.encode() + b"\r\n" + content + b"\r\n\r\n")


def made(recipe: Callable[..., Any], store: Path, **settings: Any) -> Result:
    """Run a recipe in this process; everything in its store must verify, and its mixture give batches."""
    result = run(recipe(**settings), store, name="small", runner="local")
    assert verify(store).ok
    return result


def plan_of(result: Result) -> Plan:
    return Plan.load(result.folder / "plan.json", result.plan)


def batches_of(result: Result) -> Loader:
    """Return the loader of a result, whose batches can be read to the last."""
    plan = plan_of(result)
    assert plan.steps * plan.batch * 64 >= 4096
    loader = Loader(plan, result.caches["training"].open())
    assert loader.batch(plan.steps - 1).tokens.shape == (plan.batch, 64)
    return loader


def gone(result: Result, name: str) -> Counter[str]:
    """Return how many documents a stage dropped, by reason."""
    (stage,) = (stage for stage in result.stages if stage.name == name)
    return Counter(row["reason"] for batch in stage.ledger() for row in batch.to_pylist())


def test_fineweb_keeps_dumps_apart_and_gives_batches(
    tmp_path: Path, benchmarks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load("fineweb")
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "domains").write_text("bad.example\n")
    monkeypatch.setattr(module, "datatrove_lists", lambda: [URLList(tmp_path / "lists" / "domains", "domains")])
    for dump in ("one", "two"):
        (tmp_path / "crawl" / dump).mkdir(parents=True)
        records = []
        for number, body in enumerate(english(14)):
            page = "".join(f"<p>{line}</p>" for line in body.split("\n"))
            html = f"<html><head><title>A page</title></head><body><article>{page}</article></body></html>"
            host = "bad.example" if number == 3 else "good.example"
            records.append(
                gzip_member(response_record(f"{dump}{number}", f"https://{host}/{number}", "text/html", html.encode()))
            )
        (tmp_path / "crawl" / dump / "a.warc.gz").write_bytes(b"".join(records))
    result = made(
        module.fineweb,
        tmp_path / "store",
        root=str(tmp_path / "crawl"),
        dumps="one,two",
        benchmarks=str(benchmarks),
        **SMALL,
    )
    assert result.outputs["one"].rows == result.outputs["two"].rows == 14
    assert batches_of(result).plan.components[0].name == "one"


def test_code_joins_repositories_in_path_order_and_fills_in_the_middle(tmp_path: Path, benchmarks: Path) -> None:
    module = load("code")
    rows = []
    for number in range(12):
        draw = random.Random(number)
        names = ["".join(draw.choices(SOUNDS, k=2)) for _ in range(12)]
        lines = [f"def {name}(first, second):\n    return first * {draw.randrange(99)} + second\n" for name in names]
        licence = "GPL-3.0-only" if number == 4 else "MIT"
        rows.append((f"blob{number}", "\n".join(lines), licence, f"repo{number % 3}", f"{99 - number}.py", number + 1))
    rows.append(("copy", rows[0][1] + "\n# the same again\n", "MIT", "fork", "a.py", 0))
    (tmp_path / "stack").mkdir()
    columns = zip(*rows, strict=True)
    names = ("blob_id", "content", "license_type", "repo_name", "path", "stars")
    pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), tmp_path / "stack" / "a.parquet")
    result = made(module.code, tmp_path / "store", root=str(tmp_path / "stack"), benchmarks=str(benchmarks), **SMALL)
    repositories = [row for batch in result.outputs["repositories"].batches() for row in batch.to_pylist()]
    assert {row["repo"] for row in repositories} == {"repo0", "repo1", "repo2"}
    ours = next(row["text"] for row in repositories if row["repo"] == "repo0")
    assert ours.index(rows[6][1][:40]) < ours.index(rows[3][1][:40]) < ours.index(rows[0][1][:40])
    tokens = batches_of(result).batch(0).tokens
    assert {1, 2, 3} <= set(tokens.flatten().tolist())


def test_multilingual_fits_bounds_per_language_and_evens_languages_out(tmp_path: Path, benchmarks: Path) -> None:
    module = load("multilingual")
    texts = english(24) + [text(number, language, lines=16) for language in ("de", "fr") for number in range(8)]
    root = write_lines(tmp_path / "pages", texts)
    result = made(
        module.multilingual,
        tmp_path / "store",
        root=str(root),
        benchmarks=str(benchmarks),
        confidence=0.3,
        least=8,
        **SMALL,
    )
    loader = batches_of(result)
    drawn = loader.plan.segments[0].counts
    sizes = {component.name: component.tokens for component in loader.plan.components}
    assert set(sizes) == {"en", "de", "fr"}
    assert drawn["en"] / drawn["de"] < sizes["en"] / sizes["de"]
    assert gone(result, "deduplicate")["near duplicate"] == 1


def test_cells_weight_topics_and_levels_and_then_a_table(tmp_path: Path, benchmarks: Path) -> None:
    module = load("cells")
    settings = {
        "web": str(write_lines(tmp_path / "web", english(40))),
        "good": str(tmp_path / "good"),
        "benchmarks": str(benchmarks),
        "topics": 2,
        "levels": 3,
        "tokens_of_cooldown": 1024.0,
    }
    (tmp_path / "good").mkdir()
    for number in range(12):
        (tmp_path / "good" / f"{number}.txt").write_text(text(1000 + number, lines=30))
    result = made(module.cells, tmp_path / "store", **settings, **SMALL)
    loader = batches_of(result)
    names = [component.name for component in loader.plan.components]
    assert all(name.startswith("topic=") and "/quality_level=" in name for name in names) and len(names) >= 4
    (tmp_path / "main.csv").write_text(f"component,weight\n{names[0]},1\n")
    again = made(module.cells, tmp_path / "store", **settings, **SMALL, main=str(tmp_path / "main.csv"))
    assert set(plan_of(again).segments[0].counts) == {names[0]} and again.plan != result.plan


def test_weekly_leaves_out_what_earlier_weeks_have_and_the_plan_goes_on(tmp_path: Path, benchmarks: Path) -> None:
    module = load("weekly")
    weeks = {"w1": english(12), "w2": [text(0), *english(12, first=50)]}
    for week, texts in weeks.items():
        (tmp_path / week).mkdir()
        records = [conversion(week, number, one) for number, one in enumerate(texts)]
        (tmp_path / week / "a.warc.wet.gz").write_bytes(b"".join(records))
    given = {"benchmarks": str(benchmarks), **SMALL}
    first = made(module.weekly, tmp_path / "store", root=str(tmp_path / "w1"), week="w1", **given)
    (tokenizer,) = (tmp_path / "store").glob("train-tokenizer-*/tokenizer.json")
    then = {"earlier": f"{tmp_path / 'store'}=w1", "tokenizer": str(tokenizer)}
    second = made(module.weekly, tmp_path / "store", root=str(tmp_path / "w2"), week="w2", **given, **then)
    assert gone(second, "deduplicate w2")["near duplicate"] == 2
    caches = first.caches["training"].open() | second.caches["training"].open()
    mixture = module.weekly(root=str(tmp_path / "w2"), week="w2", **given, **then).mixture
    plan = plan_of(first).continue_from(2, mixture, caches, first.caches["validation"].open())
    assert (Loader(plan, caches).batch(1).tokens == Loader(plan_of(first), caches).batch(1).tokens).all()


def test_audit_tags_everything_and_drops_nothing(tmp_path: Path, benchmarks: Path) -> None:
    module = load("audit")
    texts = [*english(8), "Too short.", f"{text(99)}\nWrite to some.one@example.org about it."]
    (tmp_path / "theirs").mkdir()
    pq.write_table(pa.table({"text": texts}), tmp_path / "theirs" / "a.parquet")
    result = made(module.audit, tmp_path / "store", root=str(tmp_path / "theirs"), benchmarks=str(benchmarks))
    rows = [row for batch in result.outputs["audited"].batches() for row in batch.to_pylist()]
    assert len(rows) == len(texts)
    assert sum(row["duplicate"] is not None for row in rows) == 1
    assert sum(row["contamination"] is not None for row in rows) == 1
    assert next(row for row in rows if row["text"] == "Too short.")["gopher_quality_reason"] is not None
    assert any("example.org" in row["text"] for row in rows)
    assert main(["report", str(tmp_path / "store")]) == 0 and (tmp_path / "store" / "report.html").exists()
