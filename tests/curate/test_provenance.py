from __future__ import annotations

import json
from pathlib import Path

from curate import Outputs, read_jsonl
from curate.command_line import main
from curate.digests import digest_bytes
from curate.inputs.files import FileUnit
from curate.provenance import INPUTS, provenance
from curate.readers.parts import Border, Part
from curate.readers.reader import Reader
from curate.receipts import read_manifest
from curate.run import run
from curate.store import Store

RECIPE = """
from pathlib import Path
from curate import Outputs, read_jsonl, recipe

@recipe
def kept(data: Path) -> Outputs:
    return Outputs(letters=read_jsonl(data, source="letters"))
"""


def write(folder: Path, *texts: str) -> Path:
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"{number}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    return folder


def made(tmp_path: Path, recipe: str, data: Path) -> tuple[Store, str]:
    (tmp_path / "letters.py").write_text(recipe)
    given = ["run", f"{tmp_path}/letters.py", "--store", f"{tmp_path}/store", "--runner", "local"]
    assert main([*given, "--set", f"data={data}"]) == 0
    store = Store(tmp_path / "store")
    return store, next(name.rpartition("/")[0] for name in store.names() if "/provenance/recipe-" in name).split("/")[0]


def test_result_tells_the_recipe_its_files_and_the_version_and_no_place(tmp_path: Path) -> None:
    data = write(tmp_path / "in", "one letter", "another letter")
    store, folder = made(tmp_path, RECIPE, data)
    manifest = read_manifest(store, folder)
    told = manifest["provenance"]
    assert told["recipe"]["name"] == "letters.py" and told["mixture"] is None
    assert store.read_bytes(f"{folder}/{told['recipe']['file']}") == RECIPE.encode()
    assert told["recipe"]["digest"] == digest_bytes(RECIPE.encode())
    content = store.read_bytes(f"{folder}/{INPUTS}")
    lines = [json.loads(line) for line in content.splitlines()]
    assert [(line["source"], line["file"]) for line in lines] == [("letters", "0.jsonl"), ("letters", "1.jsonl")]
    assert [line["digest"] for line in lines] == [digest_bytes(path.read_bytes()) for path in sorted(data.iterdir())]
    assert told["inputs"]["letters"]["bytes"] == sum(path.stat().st_size for path in data.iterdir())
    assert str(tmp_path) not in json.dumps(manifest) + content.decode()
    assert main(["verify", f"{tmp_path}/store"]) == 0


def test_comment_added_to_a_recipe_changes_nothing_and_the_first_text_stays(tmp_path: Path) -> None:
    data = write(tmp_path / "in", "one letter")
    store, folder = made(tmp_path, RECIPE, data)
    before = {name: store.read_bytes(name) for name in store.names(folder)}
    made(tmp_path, "# a comment\n" + RECIPE, data)
    assert {name: store.read_bytes(name) for name in store.names(folder)} == before


def test_files_that_were_lost_are_written_again_by_the_next_run(tmp_path: Path) -> None:
    store, folder = made(tmp_path, RECIPE, write(tmp_path / "in", "one letter"))
    before = store.read_bytes(f"{folder}/{INPUTS}")
    store.remove(f"{folder}/{INPUTS}")
    made(tmp_path, RECIPE, tmp_path / "in")
    assert store.read_bytes(f"{folder}/{INPUTS}") == before


def test_recipe_edited_while_it_runs_is_kept_as_it_was_when_it_began(tmp_path: Path) -> None:
    file = tmp_path / "letters.py"
    file.write_text("before")
    outputs = Outputs(letters=read_jsonl(write(tmp_path / "in", "one letter"), source="letters"))
    edited = lambda stage, there: file.write_text("after")  # noqa: E731
    result = run(outputs, tmp_path / "store", runner="local", recipe=file, started=edited)
    told = read_manifest(result.store, result.name)["provenance"]["recipe"]
    assert result.store.read_bytes(f"{result.name}/{told['file']}") == b"before"


def test_recipe_made_in_python_has_files_and_no_text(tmp_path: Path) -> None:
    outputs = Outputs(letters=read_jsonl(write(tmp_path / "in", "one letter"), source="letters"))
    result = run(outputs, tmp_path / "store", runner="local")
    told = read_manifest(result.store, result.name)["provenance"]
    assert told["recipe"] is None and told["inputs"]["letters"]["files"] == 1


def test_file_that_is_read_in_parts_is_one_file_of_its_whole_size() -> None:
    reader = Reader("jsonl", Path("in"), "*.jsonl", "letters", ())
    parts = [Part(Border(at, number), None, at + 10, "") for number, at in enumerate((0, 10, 20))]
    units = [FileUnit(Path("in"), "a.jsonl", 10, "d1", part=part) for part in parts]
    told = provenance([(reader, units), (reader, units)], None, None)
    assert told.told["inputs"]["letters"] | {"digest": ""} == {"files": 1, "bytes": 30, "digest": ""}
    assert json.loads(told.files[INPUTS])["bytes"] == 30
