"""`curate verify` finds one flipped byte anywhere but in runs/, and names the file."""

import random
import shutil

import pytest

from curate.accounting.quarantine import Verdict, write_quarantine
from curate.configuration import ConfigurationError
from curate.run import run
from curate.store import Store
from curate.upkeep.verify import verify
from tests.curate.corpus import small_outputs, write_corpus


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    run(small_outputs(write_corpus(folder / "in")), folder / "store", name="small", runner="local")
    return folder / "store"


@pytest.fixture
def store(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "store")
    return tmp_path / "store"


def promised(store):
    return [
        path
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.relative_to(store).parts[0] not in ("runs", "spool")
    ]


def test_verify_of_an_undamaged_store_finds_nothing(store):
    found = verify(store)
    assert found.ok and not found.notes
    assert found.files == len(promised(store))
    assert found.bytes == sum(path.stat().st_size for path in promised(store))


def flip(path, place, bit):
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def test_verify_after_one_flipped_byte_names_the_file(store):
    draw = random.Random(3)
    one_by_one = [path for path in promised(store) if path.name.endswith(".json") and path.parent.parent == store]
    together = [path for path in promised(store) if path not in one_by_one]
    receipts = [path for path in together if path.name == "receipt.json"]
    tables = [path for path in together if path.name != "receipt.json"]
    for paths in ([path] for path in one_by_one), [receipts], [tables]:
        for group in paths:
            for last in (True, False):
                flips = [(path, path.stat().st_size) for path in group]
                flips = [(path, size - 1 if last else draw.randrange(size), draw.randrange(8)) for path, size in flips]
                for path, place, bit in flips:
                    flip(path, place, bit)
                problems = verify(store).problems
                for path, place, bit in flips:
                    assert any(path.relative_to(store).as_posix() in problem for problem in problems), (path, place)
                    flip(path, place, bit)
    assert verify(store).ok


def test_verify_after_a_lost_file_names_it(store):
    draw = random.Random(4)
    result = next(store.glob("small-*"))  # nothing in a store names the result itself
    for path in draw.sample([path for path in promised(store) if path.parent != result], 12):
        content = path.read_bytes()
        path.unlink()
        found = verify(store)
        if path.name == "manifest.json":
            assert not found.ok  # its recipe misses it
        else:
            named = path.parent.name if path.name == "receipt.json" else path.relative_to(store).as_posix()
            # a shard that no dataset lists any more is a note, as one that is half made
            assert any(named in line for line in found.problems + found.notes), path
        path.write_bytes(content)


def test_verify_with_a_file_that_nothing_names_says_so(store):
    shard = next((store / "shards").iterdir())
    (shard / "more.parquet").write_bytes(b"x")
    assert any("more.parquet" in problem for problem in verify(store).problems)


def test_verify_of_a_shard_without_receipt_is_a_note(store):
    (store / "shards" / "0123456789abcdef").mkdir()
    (store / "shards" / "0123456789abcdef" / "part.parquet").write_bytes(b"half")
    found = verify(store)
    assert found.ok and "0123456789abcdef" in found.notes[0]


def test_verify_with_a_quarantine_list_that_no_task_read_says_so(store):
    key = next((store / "shards").iterdir()).name
    write_quarantine(Store(store), key, [Verdict(bytes(16), "hung", "ExtractText")])
    assert any(key in problem for problem in verify(store).problems)


def test_verify_of_a_folder_that_is_no_store_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="no store"):
        verify(tmp_path)
