"""Recipes on object stores: the same digests as on local folders, sources read there, nothing said that is secret."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from curate import Dataset, Outputs, read_code, read_csv, read_files, read_jsonl, read_parquet, read_tar, read_wet
from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.inputs.files import FileUnit, StatIndex, list_files, open_hashed, units_of
from curate.readers.chunks import InputError
from curate.readers.reader import Reader
from curate.run import Result, run
from curate.storage import requests
from curate.storage.objects import ObjectFiles
from curate.store import Store, StoreError
from curate.upkeep.verify import verify
from tests.curate.corpus import texts, write_corpus
from tests.curate.reading import gzipped
from tests.curate.test_tar import tar
from tests.curate.test_warc import record
from tests.road import corpus as road_corpus
from tests.road.corpus import road, write_raw
from tests.storage.servers import BUCKET, KEY, SECRET, credentials, moto, proxied, rclone, store_at
from transforms.pii import MaskPII


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with credentials(), moto() as found:
        yield found


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("raw"))


def upload(folder: Path, store: Store) -> None:
    """Put what is below `folder` there, as some other program does."""
    import boto3

    files = store.files
    assert isinstance(files, ObjectFiles)
    client = boto3.session.Session().client("s3", endpoint_url=store.options.endpoint, region_name="us-east-1")
    for path in folder.rglob("*"):
        if path.is_file():
            name = files.prefix + path.relative_to(folder).as_posix()
            client.put_object(Bucket=BUCKET, Key=name, Body=path.read_bytes())


def outputs(books: Path | Store, web: Path | Store) -> Outputs:
    first = read_jsonl(books, source="books", columns={"key": "isbn"}).apply(MaskPII(), name="masked")
    return Outputs(books=first, web=read_jsonl(web, source="web"))


def made(result: Result) -> dict[str, str]:
    return {name: dataset.content for name, dataset in result.outputs.items()}


def test_recipe_with_sources_and_store_on_s3_gives_the_digests_of_local_folders(
    raw: Path, endpoint: str, tmp_path: Path
) -> None:
    local = run(outputs(raw / "books", raw / "web"), tmp_path / "store", runner="local")
    source, store = store_at(endpoint, tmp_path / "node"), store_at(endpoint, tmp_path / "node")
    upload(raw, source)
    recipe = outputs(source.within("books"), source.within("web"))
    remote = run(recipe, store, runner="local")
    assert remote.digest == local.digest and made(remote) == made(local)
    assert texts(remote.outputs["books"]) == texts(local.outputs["books"])
    files = {name for name in Store(tmp_path / "store").names() if not name.startswith(("runs/", "spool/"))}
    assert {name for name in store.names() if not name.startswith("runs/")} == files
    found = verify(store)
    assert found.ok and not found.notes and found.files == len(files)
    reused: list[bool] = []
    again = run(recipe, store, runner="local", started=lambda stage, there: reused.append(there))
    assert again.digest == local.digest and all(reused)
    with pytest.raises(StoreError, match="is no local folder"):
        print(again.folder)


def test_object_that_is_damaged_is_found_and_comes_back(raw: Path, endpoint: str, tmp_path: Path) -> None:
    store = store_at(endpoint, tmp_path / "node")
    kept = read_jsonl(raw / "web", source="web").keep("web")
    recipe = Outputs(web=kept)
    first = run(recipe, store, runner="local")
    part = next(name for name in store.names("shards") if name.endswith("part.parquet"))
    content = bytearray(store.read_bytes(part))
    content[50] ^= 1
    store.files.put(part, bytes(content))
    assert [problem for problem in verify(store).problems if part in problem]
    with pytest.raises(RuntimeError, match=rf"{part} is missing or damaged|{part} is damaged"):
        run(Outputs(masked=kept.apply(MaskPII(), name="masked")), store, runner="local")
    for name in store.names(part.rpartition("/")[0]):
        store.remove(name)
    assert run(recipe, store, runner="local").digest == first.digest and verify(store).ok


# --- sources ---------------------------------------------------------------------------------------------------------


def source_at(endpoint: str, tmp_path: Path, files: dict[str, bytes]) -> Store:
    store = store_at(endpoint, tmp_path / "node")
    for name, content in files.items():
        path = tmp_path / "up" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    upload(tmp_path / "up", store)
    return store


def test_files_of_a_remote_source_are_listed_by_pattern_and_known_by_version(endpoint: str, tmp_path: Path) -> None:
    source = source_at(endpoint, tmp_path, {"b.txt": b"b", "a/c.txt": b"c", "a/d.md": b"d", "ä.txt": b"e"})
    reader = Reader("files", source, "**/*.txt", "notes")
    files = list_files(reader)
    assert [file.path for file in files] == ["a/c.txt", "b.txt", "ä.txt"]
    index = StatIndex(Store(tmp_path / "index"))
    assert units_of(reader, files, index)[1] == files
    index.put(dict.fromkeys(files, "0" * 64))
    assert not units_of(reader, list_files(reader), StatIndex(Store(tmp_path / "index")))[1]
    source.files.put("b.txt", b"x")
    assert [file.path for file in units_of(reader, list_files(reader), index)[1]] == ["b.txt"]
    with pytest.raises(ConfigurationError, match=r"no file below s3://.* matches '\*.warc'"):
        list_files(Reader("files", source, "*.warc", "notes"))
    with pytest.raises(ConfigurationError, match="holds more than bucket and prefix"):
        read_files(f"s3://{KEY}:{SECRET}@bucket/x", source="notes")


def test_remote_file_that_changed_since_it_was_fingerprinted_is_an_error_that_names_it(
    endpoint: str, tmp_path: Path
) -> None:
    source = source_at(endpoint, tmp_path, {"b.txt": b"b" * 3_000_000})
    unit = FileUnit(source, "b.txt", 3_000_000, source.digest("b.txt"))
    with open_hashed(unit) as file:
        assert file.read(10) == b"b" * 10
    source.files.put("b.txt", b"c" * 3_000_000)
    with pytest.raises(InputError, match=r"s3://.*b\.txt has the blake3 "), open_hashed(unit) as file:
        file.read()


def test_large_files_of_every_format_on_s3_are_read_in_parts_as_local_ones(endpoint: str, tmp_path: Path) -> None:
    lines = b"".join(b'{"text":"%d"}\n' % n for n in range(200))
    files = {
        "a.jsonl": lines,
        "b.jsonl.zst": b"".join(zstandard.compress(lines[i : i + 500]) for i in range(0, len(lines), 500)),
        "c.wet.gz": b"".join(gzipped(record(n, b"a text", "conversion", "text/plain")) for n in range(9)),
        "d.csv": b'text,n\n"a\nb",1\n',
        "e.tar": tar({"x.txt": b"in a tar"}),
        "f/g.py": b"x = 1",
    }
    source = source_at(endpoint, tmp_path, files)

    def read(root: Path | Store) -> Outputs:
        return Outputs(
            lines=read_jsonl(root, "*.jsonl*", source="lines", unit_bytes=1000),
            web=read_wet(root, source="web", unit_bytes=500),
            table=read_csv(root, source="table"),
            members=read_tar(root, source="members", kind="text"),
            code=read_code(root, "f/*", source="code"),
        )

    remote, local = (
        run(read(root), tmp_path / name, runner="local") for name, root in (("s", source), ("l", tmp_path / "up"))
    )
    assert remote.digest == local.digest
    assert min(len(remote.outputs[name].shards()) for name in ("lines", "web")) > 2


def test_parquet_source_on_s3_is_read_as_a_local_one(endpoint: str, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "local").mkdir()
    pq.write_table(pa.table({"text": ["one", "two"], "n": [1, 2]}), tmp_path / "local" / "t.parquet")
    source = source_at(endpoint, tmp_path, {"t.parquet": (tmp_path / "local" / "t.parquet").read_bytes()})

    def reading(root: Path | Store, column: str = "n") -> Dataset:
        return read_parquet(root, "*.parquet", source="t", ignore=[column])

    local = run(Outputs(t=reading(tmp_path / "local")), tmp_path / "store", runner="local")
    remote = run(Outputs(t=reading(source)), tmp_path / "other", runner="local")
    assert remote.digest == local.digest
    with pytest.raises(ConfigurationError, match=r"s3://.*t\.parquet has no one column lacking"):
        columns = {"text": "lacking"}
        run(Outputs(t=read_parquet(source, "*.parquet", source="t", columns=columns)), tmp_path / "x", runner="local")


# --- the command line ------------------------------------------------------------------------------------------------

RECIPE = """
from curate import Outputs, read_jsonl, recipe


@recipe
def web(root: str) -> Outputs:
    return Outputs(web=read_jsonl(root, source="web"))
"""


def test_commands_work_on_a_store_by_its_url_and_say_nothing_secret(
    raw: Path, endpoint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "web.py").write_text(RECIPE)
    store = store_at(endpoint, tmp_path / "node")
    remote = ["--endpoint", endpoint, "--region", "us-east-1", "--node-cache", str(tmp_path / "node")]
    made_of = [f"{tmp_path}/web.py", "--store", str(store.location), "--set", f"root={raw / 'web'}", *remote]
    assert main(["plan", *made_of]) == 0
    assert main(["run", *made_of, "--runner", "local"]) == 0
    assert main(["plan", *made_of]) == 0
    assert main(["verify", str(store.location), *remote]) == 0
    assert main(["look", str(store.location), *remote]) == 0
    assert main(["report", str(store.location), *remote]) == 0
    said = "".join(capfd.readouterr())
    assert f"{store.location}/report.html" in said and "0 problems" in said and "reused" in said
    assert store.read_bytes("report.html").startswith(b"<!DOCTYPE html>")
    assert main(["run", *made_of, "--runner", "local", "--requests", "0"]) != 0
    assert main(["verify", "s3://another-bucket/x", *remote]) != 0
    said += "".join(capfd.readouterr())
    held = said.encode() + b"".join(map(store.read_bytes, store.names()))
    held += b"".join(path.read_bytes() for path in (tmp_path / "node").rglob("*") if path.is_file())
    assert SECRET.encode() not in held and KEY.encode() not in held
    assert b'"event": "recipe"' in held or b'"event":"recipe"' in held


def test_run_on_a_server_that_ignores_conditions_needs_to_be_the_only_one(
    raw: Path, endpoint: str, tmp_path: Path
) -> None:
    recipe = Outputs(web=read_jsonl(raw / "web", source="web"))
    with rclone(tmp_path / "served") as ignoring:
        with pytest.raises(StoreError, match="ignores conditions of writes"):
            run(recipe, store_at(ignoring, tmp_path / "node"), runner="local")
        store = store_at(ignoring, tmp_path / "node", writers="one")
        remote = run(recipe, store, runner="local")
        assert verify(store).ok
    assert remote.digest == run(recipe, tmp_path / "store", runner="local").digest


class Stopped(BaseException):
    """Stands for the death of the driver."""


def test_driver_that_dies_at_any_write_goes_on_from_there_on_s3(raw: Path, endpoint: str, tmp_path: Path) -> None:
    recipe = outputs(raw / "books", raw / "web")
    whole, passed = store_at(endpoint, tmp_path / "node"), list[str]()
    expected = run(recipe, replace(whole, failpoint=passed.append), runner="local").digest
    store, seen = store_at(endpoint, tmp_path / "node"), set[str]()
    for target in passed[2::17]:

        def die(point: str, target: str = target) -> None:
            seen.add(point)
            if point == target:
                raise Stopped

        if target.startswith("runs/"):  # of that run alone
            continue
        with suppress(Stopped):
            run(recipe, replace(store, failpoint=die), runner="local")
    assert len([point for point in passed[2::17] if point in seen]) >= 3
    assert run(recipe, store, runner="local").digest == expected
    assert [n for n in store.names() if not n.startswith("runs/")] == [
        n for n in whole.names() if not n.startswith("runs/")
    ]
    assert verify(store).ok and not list((tmp_path / "node" / "spool").iterdir())


def test_recipe_through_a_line_that_loses_a_third_of_the_requests_gives_the_same(
    raw: Path, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE", 0.001)
    recipe, draw = outputs(raw / "books", raw / "web"), random.Random(8)
    expected = run(recipe, tmp_path / "store", runner="local").digest
    with proxied(endpoint) as (own, proxy):
        proxy.meddle = lambda request: draw.choice([None] * 8 + ["lose", "lose answer", "cut answer", 503])
        store = store_at(own, tmp_path / "node", retries=12)
        assert run(recipe, store, runner="local").digest == expected
        proxy.meddle = lambda request: None
        assert verify(store).ok


@pytest.mark.slow
@pytest.mark.ray
def test_every_kind_of_stage_on_s3_gives_the_digest_of_a_local_folder(endpoint: str, tmp_path: Path) -> None:
    recipe = road(root=write_raw(tmp_path / "raw"))
    local = run(recipe, tmp_path / "store", runner="local", name="road")
    store = store_at(endpoint, tmp_path / "node")
    remote = run(recipe, store, runner="ray", workers=2, name="road", modules=[road_corpus])
    assert remote.digest == local.digest and remote.plan == local.plan
    caches = remote.caches["training"].open()
    assert {name: cache.digest for name, cache in caches.items()} == {
        name: cache.digest for name, cache in local.caches["training"].open().items()
    }
    assert all(not cache.verify() for cache in caches.values())
    for cache in caches.values():
        assert cache.on_this_node().read(5, 50).tolist() == cache.read(5, 50).tolist()
    found = verify(store)
    assert found.ok and not found.notes
