"""A source on an object store pinned by the versions of its objects: none is read before a run, others are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from curate import Outputs, read_jsonl
from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.planning.plan import plan
from curate.run import run
from curate.store import Store
from tests.curate.corpus import sentence, texts, write_lines
from tests.storage.servers import credentials, moto, store_at
from tests.storage.test_recipes import upload


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with credentials(), moto() as found:
        yield found


def files(root: Path, seeds: tuple[int, ...]) -> Path:
    for name, seed in zip("ab", seeds, strict=True):
        write_lines(root / f"{name}.jsonl", [{"text": sentence(seed)}])
    return root


def outputs(source: Store, listing: Path) -> Outputs:
    return Outputs(read_jsonl(source, source="s", listing=listing))


def test_objects_pinned_by_version_are_planned_run_and_refused_when_they_change(
    endpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = store_at(endpoint, tmp_path / "node")
    upload(files(tmp_path / "in", (1, 2)), source)
    assert main(["list", str(source.location), "--endpoint", endpoint, "--pattern", "*.jsonl"]) == 0
    listing = tmp_path / "listing.jsonl"
    listing.write_text(capsys.readouterr().out)
    lines = [json.loads(line) for line in listing.read_text().splitlines()]
    assert [sorted(line) for line in lines] == [["path", "size", "version"]] * 2
    (known,) = plan(outputs(source, listing), tmp_path / "store")
    assert (known.state, known.shards) == ("to run", 2)
    result = run(outputs(source, listing), tmp_path / "store", runner="local")
    assert texts(result.stages[0]) == [sentence(1), sentence(2)]
    assert {shard["key"] for shard in result.stages[0].shards()} == set(known.run)
    upload(files(tmp_path / "in", (1, 3)), source)
    with pytest.raises(ConfigurationError, match=r"1 files of another version than listed \(b.jsonl\): list them"):
        run(outputs(source, listing), tmp_path / "store", runner="local")
