"""The command line: exit statuses, what is printed, and that errors say what to do."""

import errno
import gzip
import io
import json
import sys

import pytest

from curate.command_line import main
from tests.curate.test_archives import arc_record
from tests.curate.test_tar import tar
from tests.curate.test_warc import record

RECIPE = '''
from curate import Outputs, deduplicate, read_jsonl, recipe
from transforms import KeepIf

def long_enough(row):
    return len(row["text"]) >= LEAST

LEAST = 5

@recipe
def texts(root: str, share: float = 1.0, last: bool = False) -> Outputs:
    """Return texts."""
    return Outputs(deduplicate(read_jsonl(root, source="texts").apply(KeepIf(long_enough, reason="short"))))
'''

UNKNOWN = """from curate import recipe
@recipe
def texts():
    return read_jsnl("in", source="texts")
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    lines = [{"text": text} for text in ("a first text", "a second text", "a first text", "no", "\x1b[31mred\u202e")]
    (tmp_path / "in" / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "recipe.py").write_text(RECIPE)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "unknown.py").write_text(UNKNOWN)
    return tmp_path


def run(*more):
    return main(["run", "recipe.py", "--store", "store", "--runner", "local", "--set", "root=in", *more])


def test_run_of_a_recipe_prints_outputs_and_digest(place, capsys):
    assert run() == 0
    printed = capsys.readouterr().out
    assert "deduplicate: 3 documents" in printed
    assert len(printed.split("digest: ")[1].strip()) == 64


def test_run_again_reuses_everything_and_prints_the_same_digest(place, capsys):
    run()
    first = capsys.readouterr().out
    assert run() == 0
    again = capsys.readouterr()
    assert again.out == first
    assert "apply texts: reused" in again.err and "deduplicate: reused" in again.err


def test_run_on_a_sample_keeps_a_part_and_has_another_digest(place, capsys):
    assert run() == 0
    whole = capsys.readouterr().out
    assert run("--sample", "0.5") == 0
    assert capsys.readouterr().out != whole


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "missing.py", "--store", "store"], "is not a file"),
        (["run", "recipe.py:other", "--store", "store"], "has no recipe 'other'; it has texts"),
        (["run", "empty.py", "--store", "store"], "empty.py has no recipe: write @recipe above"),
        (["run", "unknown.py", "--store", "store"], "recipe texts, line 4: NameError: name 'read_jsnl'"),
        (["run", "recipe.py", "--store", "in/store", "--set", "root=in"], "source 'texts' would read the store"),
        (["run", "recipe.py", "--store", "store"], "missing a required argument: 'root'"),
        (["run", "recipe.py", "--store", "store", "--set", "root"], "give NAME=VALUE"),
        (["run", "recipe.py", "--store", "store", "--set", "rot=in"], "has no setting rot; it has root"),
        (["run", "recipe.py", "--store", "store", "--set", "root=in", "--set", "share=x"], "no float"),
        (["run", "recipe.py", "--store", "store", "--set", "root=nowhere"], "nowhere is not a folder"),
        (["run", "recipe.py", "--store", "store", "--set", "root=in", "--sample", "2"], "at most 1"),
        (["look", "nowhere"], "is not there"),
        (["report", "nowhere"], "no result of a recipe"),
    ],
)
def test_wrong_use_exits_2_says_what_to_do_and_writes_nothing(place, capsys, arguments, says):
    assert main(arguments) == 2
    assert says in capsys.readouterr().err
    assert not (place / "store" / "shards").exists() and not (place / "in" / "store").exists()


def test_place_that_cannot_be_a_store_is_said_once_with_what_to_do(place, capsys):
    arguments = ["run", "recipe.py", "--store", "recipe.py", "--runner", "local", "--set", "root=in"]
    assert main(arguments) == 3
    (said,) = (line for line in capsys.readouterr().err.splitlines() if "compiling" not in line)
    assert f"the store {place / 'recipe.py'} cannot be made" in said and "give a folder that you may write" in said


def test_text_that_the_locale_cannot_show_is_escaped(place, monkeypatch):
    (place / "in" / "a.jsonl").write_text(json.dumps({"text": "Żółw"}))
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", shown)
    assert main(["look", "in/a.jsonl"]) == 0
    shown.flush()
    assert rb"text: \u017b\xf3\u0142w" in shown.buffer.getvalue()


def test_full_disk_is_said_with_what_to_do(place, capsys, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("curate.run.commit_result", full)
    assert run() == 3
    assert "the same command goes on from there" in capsys.readouterr().err


def test_run_that_keeps_no_documents_says_where_they_went(place, capsys):
    (place / "recipe.py").write_text(RECIPE.replace("LEAST = 5", "LEAST = 500"))
    assert run() == 0
    printed = capsys.readouterr()
    assert "deduplicate: 0 documents" in printed.out
    assert "no documents in deduplicate: curate look store shows what was dropped" in printed.err


def test_a_wrong_command_exits_2(capsys):
    with pytest.raises(SystemExit) as left:
        main(["walk"])
    assert left.value.code == 2


def test_a_failing_function_exits_3_names_shard_and_document(place, capsys):
    text = RECIPE.replace('len(row["text"]) >= LEAST', 'row["words"] > 1')
    (place / "recipe.py").write_text(text)
    assert run() == 3
    said = capsys.readouterr().err
    assert "a.jsonl" in said and "KeepIf: 5 of 5 documents raised" in said and "KeyError" in said
    (place / "recipe.py").write_text(RECIPE)
    assert run() == 0


def test_plan_before_hashing_says_so_and_after_a_run_what_is_reused(place, capsys):
    arguments = ["plan", "recipe.py", "--store", "store", "--set", "root=in"]
    assert main(arguments) == 0
    assert "unknown until hashed: 1 file," in capsys.readouterr().out
    assert not (place / "store").exists()
    run()
    capsys.readouterr()
    assert main(arguments) == 0
    assert "in all: 3 reused; 0 bytes to read" in capsys.readouterr().out
    (place / "recipe.py").write_text(RECIPE.replace("LEAST = 5", "LEAST = 6"))
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "to run: 0 of 1 shards are there" in printed and "reused" not in printed
    assert main([*arguments, "--json", "--cost", "--workers", "3"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["workers"] == 3 and [stage["state"] for stage in planned["stages"]] == ["to run"] * 3
    assert len(planned["stages"][0]["run"]) == 1 and planned["stages"][0]["why"]


def test_verify_exits_1_after_a_flipped_byte_and_names_the_file(place, capsys):
    run()
    assert main(["verify", "store"]) == 0
    path = next((place / "store" / "shards").glob("*/part.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    capsys.readouterr()
    assert main(["verify", "store"]) == 1
    assert f"{path.parent.name}/part.parquet" in capsys.readouterr().out


@pytest.mark.parametrize("url", ["http://bucket/store", "s3://user:secret@bucket/store"])
def test_place_that_no_store_can_be_exits_2(place, capsys, url):
    assert main(["verify", url]) == 2
    said = capsys.readouterr().err
    assert said.startswith("curate: ") and "StoreError" not in said and "secret" not in said


@pytest.mark.parametrize("more", [[], ["--deep"]])
def test_verify_of_no_store_exits_2(place, capsys, more):
    assert main(["verify", "in", *more]) == 2
    assert "no store" in capsys.readouterr().err


def test_verify_tells_how_far_it_is_on_the_standard_error(place, capsys):
    run()
    capsys.readouterr()
    assert main(["verify", "store"]) == 0
    said = capsys.readouterr()
    assert said.err.startswith(f"verify: {said.out.split()[0]} checks, ")


def test_option_that_a_command_does_not_have_ends_in_the_usage_of_that_command(place, capsys):
    for given in (["verify", "--nonsense", "in"], ["verify", "in", "again"]):
        with pytest.raises(SystemExit) as left:
            main(given)
        said = capsys.readouterr().err
        assert left.value.code == 2
        assert said.startswith("usage: curate verify ") and "--deep" in said
        assert said.endswith(f"curate verify: error: unrecognized arguments: {given[-1 if 'again' in given else 1]}\n")


@pytest.mark.parametrize("path", ["in/a.jsonl", "store"])
def test_look_shows_texts_with_terminal_controls_as_escapes(place, capsys, path):
    run()
    capsys.readouterr()
    assert main(["look", path, "--count", "9"]) == 0
    printed = capsys.readouterr().out
    assert "a second text" in printed and "\\u001b[31mred\\u202e" in printed
    assert "\x1b" not in printed and "\u202e" not in printed


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("a.csv", b"text,n\nwords,1\n", "words"),
        ("a.tar.gz", gzip.compress(tar({"x.txt": b"in a tar"}), mtime=0), "in a tar"),
        ("a.warc.wet", record(1, b"some text", "conversion", "text/plain"), "some text"),
        ("a.arc", arc_record("http://e.org/", b"HTTP/1.0 200 OK\r\n\r\n<p>a page of words</p>"), "a page of words"),
        ("a.html", b"<p>markup", "<p>markup"),
        ("notes", b"plain", "plain"),
    ],
)
def test_look_shows_what_is_in_files_of_each_format(place, capsys, name, content, shown):
    (place / name).write_bytes(content)
    assert main(["look", name]) == 0
    assert shown in capsys.readouterr().out


def test_look_at_a_store_shows_what_was_dropped_and_why(place, capsys):
    run()
    capsys.readouterr()
    main(["look", "store"])
    assert "deduplicate, equal text" in capsys.readouterr().out


def test_report_writes_one_page_into_the_store(place, capsys):
    run()
    capsys.readouterr()
    assert main(["report", "store"]) == 0
    path = place / "store" / "report.html"
    assert capsys.readouterr().out.strip() == str(path)
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert json.loads(path.with_suffix(".json").read_bytes())["kind"] == "report"
    assert main(["verify", "store"]) == 0
    capsys.readouterr()
    assert main(["report", "store", "--fail-on", "any"]) == 0
    assert main(["report", "store", "--fail-on", "licences-known, documents-conserved"]) == 1
    said = capsys.readouterr().err
    assert "curate: check licences-known: warn: unknown for" in said and "documents-conserved" not in said
    assert main(["report", "nowhere", "--fail-on", "licence-known"]) == 2
    assert "there is no check 'licence-known': give any, or some of documents-conserved," in capsys.readouterr().err


def test_help_of_every_command_teaches(capsys):
    for command in ("run", "plan", "verify", "look", "report", "fetch"):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0
        assert len(capsys.readouterr().out) > 150
