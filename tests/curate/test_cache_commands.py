"""Commands on token caches: tokens with borders, export, import, extend, and verify --deep."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from curate import Outputs, tokenize
from curate.caches import FORMATS, TokenCache
from curate.command_line import main
from curate.commands.caches import EXPORTS
from curate.upkeep.deep import sampled_documents, verify_deeply
from tests.curate.corpus import run_on, write_lines
from tests.curate.token_corpus import END, described, edit_description, lines, write_tokenizer
from transforms.tokens import Tokenizer

DOCUMENTS = lines(24)


@pytest.fixture(scope="module")
def store(memory: Path) -> Path:
    """A store with caches of two levels, made by a recipe."""
    folder = memory / "commands"
    write_lines(folder / "raw" / "a.jsonl", DOCUMENTS)
    tokenizer = Tokenizer(write_tokenizer(memory), eos=END)
    run_on(Outputs(cells=tokenize(described(folder / "raw"), tokenizer, by="level")), folder / "store")
    return folder / "store"


def cache_in(store: Path, cell: str) -> Path:
    return next(store.glob(f"caches/{cell}-*"))


def test_tokens_draws_the_borders_of_a_document(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = TokenCache.open(cache_in(store, "1"))
    identity = cache.ids(3, 4).tobytes().hex()
    assert main(["tokens", str(store), "--doc", identity, "--ids"]) == 0
    head, *drawn, ids = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"{identity}: document 3 of 1, [0-9]+ characters, {len(cache[3])} tokens", head)
    assert ids == " ".join(map(str, cache[3].tolist())) and "".join(drawn).count("│") == len(cache[3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokens", "--doc", "0" * 32], "no cache holds the document 00"),
        (["tokens", "--doc", "xyz"], "an id has 32 hex digits"),
        (["export", "--format", "npy", "--to", "out"], "--cell: one of 0, 1"),
        (["export", "--format", "npy", "--to", "out", "--cell", "7"], "--cell: one of 0, 1, not 7"),
    ],
)
def test_wrong_use_exits_2_and_says_what_there_is(
    store: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([arguments[0], str(store), *arguments[1:]]) == 2
    assert message in capsys.readouterr().err


def test_store_without_caches_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["tokens", str(tmp_path / "empty"), "--doc", "0" * 32]) == 2
    assert "holds no token cache: a recipe makes them with tokenize(" in capsys.readouterr().err


def test_command_offers_every_format_that_caches_are_exported_to() -> None:
    assert list(EXPORTS) == sorted(FORMATS)


def test_export_import_and_extend_print_what_they_made(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (TokenCache.open(cache_in(store, cell)) for cell in ("0", "1"))
    assert main(["export", str(store), "--cell", "0", "--format", "datatrove", "--to", str(tmp_path / "ds")]) == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "ds" / f"0.ds{end}") for end in ("", ".index", ".metadata")
    ]
    tokenizer = next(store.rglob("tokenizer.json"))
    arguments = [str(tmp_path / "ds" / "0.ds"), "--tokenizer", str(tokenizer), "--eos", END, "--name", "old"]
    unknown = [*arguments[:4], "<|nope|>", *arguments[5:]]
    assert main(["import", *unknown, "--to", str(tmp_path / "unknown")]) == 2
    assert "no added token '<|nope|>'" in capsys.readouterr().err
    assert main(["import", *arguments, "--to", str(tmp_path / "made")]) == 0
    assert capsys.readouterr().out.startswith(f"TokenCache('old', {first.tokens} tokens of {len(first)} documents")
    assert main(["export", str(tmp_path / "made"), "--format", "npy", "--to", str(tmp_path / "npy")]) == 0
    assert np.load(tmp_path / "npy" / "tokens.npy").tolist() == first.read(0, first.tokens).tolist()
    capsys.readouterr()
    caches = [str(cache_in(store, cell)) for cell in ("0", "1")]
    assert main(["extend", *caches, "--to", str(tmp_path / "both")]) == 0
    assert f"{first.tokens + second.tokens} tokens of 24 documents" in capsys.readouterr().out


def test_verify_deep_finds_nothing_in_a_sound_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(store), "--deep"]) == 0
    assert capsys.readouterr().out.endswith(": 0 problems\n")
    cache = TokenCache.open(cache_in(store, "0"))
    assert sampled_documents(cache) == list(range(len(cache)))  # fewer than LEAST


def rewritten(store: Path, place: Path, swap: str) -> Path:
    """Return a copy of the store whose cache "1" was written again, with every digest right, but wrong."""
    from curate.caches.description import read_description
    from curate.caches.standalone import Documents, write_cache
    from curate.store import Store

    copy = Path(shutil.copytree(store, place))
    folder = cache_in(copy, "1")
    cache = TokenCache.open(folder)
    count = len(cache)
    ids, origin = cache.ids(0, count).copy(), cache.origin(0, count).copy()
    order = np.arange(count)
    if swap == "origin":
        origin[:, 1] = origin[::-1, 1]
    if swap == "tokens":
        order = order[::-1]
    documents = Documents(
        np.zeros(count, np.int64), np.arange(count), np.diff(cache.starts)[order], ids, cache.text_digests(), origin
    )
    sources = [type("Turned", (), {"gather": lambda self, rows: np.concatenate([cache[order[row]] for row in rows])})()]
    made = write_cache(Store(place.parent / f"made-{swap}"), read_description(Store(folder)), documents, sources)
    for manifest in copy.glob("*/manifest.json"):
        text = manifest.read_text()
        manifest.write_text(text.replace(cache.digest, made.digest))
    shutil.rmtree(folder)
    shutil.copytree(made.store.root, folder)
    return copy


@pytest.mark.parametrize(
    ("swap", "message"),
    [("origin", "has another id than its row"), ("tokens", "has other tokens than its text when it is encoded again")],
)
def test_verify_deep_finds_what_no_digest_shows(store: Path, tmp_path: Path, swap: str, message: str) -> None:
    from curate.caches.tokenization import stored_tokenizer
    from curate.store import Store
    from curate.upkeep import deep

    copy = rewritten(store, tmp_path / "copy", swap)
    cache = TokenCache.open(cache_in(copy, "1"))
    assert cache.verify() == [] and stored_tokenizer(Store(copy), cache.tokenizer)
    problems = list(deep._provenance(Store(copy), cache))
    assert any(message in problem and "row" in problem for problem in problems), problems


def test_verify_deep_tells_a_flipped_chunk_and_another_canary(store: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(store, tmp_path / "copy"))
    folder = cache_in(copy, "1")
    value = json.loads((folder / "cache.json").read_bytes())
    edit_description(folder, canary={**value["canary"], "ids": value["canary"]["ids"][1:]})
    chunk = cache_in(copy, "0") / "tokens" / "c" / "0"
    content = bytearray(chunk.read_bytes())
    content[3] ^= 1
    chunk.write_bytes(content)
    text = "\n".join(verify_deeply(copy).problems)
    assert "tokens/c/0 has the digest" in text and "the canary has other ids now" in text
    assert "its tokens and offsets do not have" in text or "is damaged" in text
