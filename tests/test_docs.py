"""What the documentation says is checked against the code."""

import argparse
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from curate.accounting.ledger import KINDS, LEDGER, SAMPLE_KINDS, SAMPLES
from curate.accounting.quarantine import REASONS
from curate.command_line import main, parser
from curate.committing.gathered import MERGED, ROWS
from curate.datasets import SHARDS
from curate.inputs.listings import CHECKSUMS
from curate.recipes.recipe import Outputs, Recipe
from transforms.schema import documents

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RECIPES = [*sorted((ROOT / "docs" / "recipes").glob("*.py")), ROOT / "examples" / "demo.py"]


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def load(path, source):
    spec = importlib.util.spec_from_loader(path.stem, loader=None, origin=str(path))
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[spec.name] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    return [value for value in vars(module).values() if isinstance(value, Recipe)]


def build(recipe):
    given = {name: name for name, parameter in recipe.parameters.items() if parameter.default is parameter.empty}
    return recipe(**given)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_blocks_of_a_page_run_and_their_recipes_build(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, block in enumerate(blocks(page)):
        path = tmp_path / f"block{number}.py"
        path.write_text(block)
        for recipe in load(path, block):
            assert isinstance(build(recipe), Outputs)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_recipes_build_without_reading_their_sources(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    item = json.dumps({"question": "How many?", "answer": "Two, of many."})
    for named, content in {"demo-data/benchmarks/HumanEval.jsonl.gz": "", "benchmarks/gsm8k.jsonl": item}.items():
        (tmp_path / named).parent.mkdir(parents=True)  # files that transforms name are hashed when named
        (tmp_path / named).write_text(content)
    recipes = load(path, path.read_text("utf-8"))
    assert recipes
    for recipe in recipes:
        assert str(build(recipe)).count("→") > 1
        assert recipe.function.__doc__


def test_readme_prints_the_digest_that_everyone_gets():
    digests = json.loads((ROOT / "examples" / "digests.json").read_text())
    assert digests["full"] in (ROOT / "README.md").read_text("utf-8")
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests.values())


def test_readme_names_only_targets_of_the_makefile_and_files_that_are_there():
    text = (ROOT / "README.md").read_text("utf-8")
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    named = {first or second for first, second in re.findall(r"`make ([a-z]+)`|^    make ([a-z]+)", text, re.M)}
    assert {"demo", "test", "versions"} <= named <= set(targets)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (ROOT / link).exists(), link


def test_commands_in_the_documentation_exist_with_their_options():
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    names = "|".join(sorted(map(re.escape, commands.choices), key=len, reverse=True))
    used = re.compile(rf"\bcurate ({names})(?![\w-])([^\n`|]*)")
    for page in PAGES:
        for command, rest in used.findall(page.read_text("utf-8")):
            options = {option for action in commands.choices[command]._actions for option in action.option_strings}
            for option in re.findall(r"(?<![\w-])--[a-z0-9][a-z0-9-]*", rest):
                assert option in options, f"{page.name}: curate {command} has no {option}"


def test_formats_page_names_every_column_and_kind():
    text = (ROOT / "docs" / "formats.md").read_text("utf-8")
    for schema in (LEDGER, SAMPLES, SHARDS, ROWS, documents()):
        for name in schema.names:
            assert re.search(rf"\b{name}\b", text), name
    for word in (*KINDS, *SAMPLE_KINDS, *REASONS):
        assert f'"{word}"' in text, word
    for name in (*CHECKSUMS, MERGED):
        assert name in text, name


def test_formats_page_names_every_field_of_receipts_manifests_and_statistics(tmp_path):
    from curate.run import run
    from curate.store import Store
    from tests.curate.corpus import small_outputs, write_corpus

    result = run(small_outputs(write_corpus(tmp_path / "in")), tmp_path / "store", runner="local")
    store = Store(tmp_path / "store")
    text = (ROOT / "docs" / "formats.md").read_text("utf-8")
    receipt = next((tmp_path / "store" / "shards").glob("*/receipt.json"))
    names = set(json.loads(receipt.read_text())) | set(result.stages[0].manifest)
    names |= set(store.read_json(f"{result.folder.name}/manifest.json"))
    for dataset in result.stages:
        names |= set(dataset.statistics)
        for step in dataset.statistics.get("steps", {}).values():
            names |= {name for source in step["sources"].values() for name in source}
    for name in names:
        assert re.search(rf"\b{name}\b", text), name


QUICK = ROOT / "docs" / "quickstart.md"
NOT_HERE = ("train ",)  # its tests are tests/trainers


def test_commands_of_the_quickstart_run_as_they_are_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_input, first = blocks(QUICK)
    exec(compile(make_input, "make_input.py", "exec"), {"__name__": "made"})
    (tmp_path / "first.py").write_text(first, "utf-8")
    given = re.findall(r"^```sh\n(.*?)^```", QUICK.read_text("utf-8"), re.M | re.S)
    commands = [line.removeprefix("curate ") for block in given for line in block.splitlines()]
    ran = [command for command in commands if not command.startswith(NOT_HERE) and "--run " not in command]
    assert len(ran) > 9
    for command in ran:
        assert main(command.split()) == 0, command
    printed = capsys.readouterr().out
    assert "documents: 240 documents" in printed and "replayed: the same text" in printed
    assert (tmp_path / "store" / "report.html").exists() and list((tmp_path / "texts").iterdir())
