"""`curate doctor` and `curate formats`: each look says what is there, and what to do where something is not."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest

from curate.command_line import main
from curate.commands.formats import known_formats
from curate.configuration import ConfigurationError
from curate.doctor import NAMES, examination, examine, machine, packages, services
from curate.store import Store


def states(findings):
    return {finding.name: finding.state for finding in findings}


def test_examination_of_this_machine_names_a_remedy_for_all_that_it_lacks():
    findings = list(examine(skip=("ray",)))
    assert {"system", "python", "packages", "extras", "cores", "memory", "kernels"} <= set(states(findings))
    for finding in findings:
        assert finding.said and bool(finding.remedy) == (finding.state != "ok"), finding


def test_look_that_fails_is_a_problem_and_the_others_go_on(monkeypatch):
    def broken():
        raise LookupError("no word")

    monkeypatch.setattr(examination, "_LOOKS", {"first": broken, "cores": machine.look_at_processors})
    assert states(examine()) == {"first": "problem", "cores": "ok"}


@pytest.mark.parametrize(
    ("needs", "state"),
    [
        (["numpy>=1"], "ok"),
        (["numpy>=1", "numpy<1; python_version < '3'"], "ok"),
        (["numpy<1"], "problem"),
        (["no-such-package-here"], "problem"),
        (["datasketch[no-such-extra]>=1"], "ok"),
    ],
)
def test_packages_that_do_not_fit_the_metadata_are_a_problem(monkeypatch, needs, state):
    asked = packages.requires
    monkeypatch.setattr(packages, "requires", lambda name: needs if name == "curate" else asked(name))
    assert states(packages.look_at_packages())["packages"] == state


def test_package_that_overwrites_fasttext_is_a_problem(monkeypatch):
    monkeypatch.setattr(packages, "_needs", lambda: ())
    monkeypatch.setattr(packages, "_installed", lambda name: "1" if name == "fasttext-predict" else None)
    (_, found) = packages.look_at_packages()
    assert found.state == "problem" and "pip uninstall fasttext-predict" in found.remedy


def test_extra_in_versions_that_do_not_fit_is_a_warning_and_an_absent_one_is_not(monkeypatch):
    needs = ["numpy<1; extra == 'old'", "numpy>=1; extra == 'away'", "no-such; extra == 'away'", "numpy; extra == 'in'"]
    monkeypatch.setattr(packages, "requires", lambda name: needs)
    old, extras = packages.look_at_extras()
    assert (old.name, old.state) == ("extra old", "warning")
    assert extras.said == "installed: in; not: away"


def test_lock_with_another_version_is_a_warning_that_names_it(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"numpy=={version('numpy')} \\\n    --hash=sha256:00\nabsent==1\nold==1 ; python_version < '3'\n")
    assert states(packages.look_at_lock(lock)) == {"lock": "ok"}
    lock.write_text("numpy==1.0\n")
    (found,) = packages.look_at_lock(lock)
    assert found.state == "warning" and f"numpy {version('numpy')} (lock: 1.0)" in found.said


@pytest.mark.parametrize("text", [None, "nothing pinned\n"])
def test_lock_that_says_nothing_is_refused(tmp_path, text):
    lock = tmp_path / "lock"
    if text is not None:
        lock.write_text(text)
    with pytest.raises(ConfigurationError, match="--lock"):
        list(packages.look_at_lock(lock))


@pytest.mark.parametrize(("free", "state"), [(64 << 30, "ok"), (3 << 29, "warning"), (1 << 29, "problem")])
def test_memory_is_judged_by_what_the_cores_need(monkeypatch, free, state):
    monkeypatch.setattr(machine, "available_memory", lambda: free)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    assert states(machine.look_at_memory()) == {"memory": state}


def test_shared_memory_that_is_not_there_is_a_warning(tmp_path):
    assert states(machine.look_at_shared_memory(tmp_path / "shm")).get("shared memory", "warning") == "warning"


def test_kernels_that_cannot_be_kept_are_a_problem(monkeypatch):
    def refused():
        raise PermissionError("give the user a home to write")

    monkeypatch.setattr("transforms.kernels.own_folder", refused)
    (found,) = machine.look_at_kernels()
    assert found.state == "problem" and found.remedy == "give the user a home to write"


def test_language_model_that_is_missing_or_another_is_told(monkeypatch, tmp_path):
    model = tmp_path / "lid.176.ftz"
    monkeypatch.setattr("transforms.language_model.default_model", lambda: model)
    assert states(machine.look_at_language_model()) == {"language model": "warning"}
    model.write_bytes(b"something else")
    assert states(machine.look_at_language_model()) == {"language model": "problem"}


@pytest.mark.parametrize(
    ("program", "state"), [("print('answer 42')", "ok"), ("raise SystemExit('no port is free')", "problem")]
)
def test_ray_is_judged_by_the_answer_of_a_task(program, state):
    (found,) = services.look_at_ray(program)
    assert found.state == state
    assert state == "ok" or "no port is free" in found.said


def test_store_is_tried_where_it_would_be_made_and_nothing_is_left(tmp_path):
    (found,) = services.look_at_store(Store(tmp_path / "new" / "store"))
    assert found.state in ("ok", "warning") and "hard links" in found.said
    assert not list(tmp_path.iterdir())


def test_store_below_a_file_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("")
    assert states(services.look_at_store(Store(tmp_path / "file" / "store"))) == {"store": "problem"}


def test_command_exits_1_when_something_keeps_recipes_from_running(monkeypatch, capsys, tmp_path):
    skipped = [word for name in NAMES if name != "cores" for word in ("--skip", name)]
    assert main(["doctor", *skipped]) == 0
    assert capsys.readouterr().out.endswith("0 problems, 0 warnings\n")
    (tmp_path / "file").write_text("")
    assert main(["doctor", *skipped, "--json", "--store", str(tmp_path / "file")]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == ["cores", "store"] and lines[1]["remedy"]


def test_formats_are_those_of_the_formats_page(capsys):
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+)(?:-(\d+))? \|", page, re.M)
    documented = {file: (int(number), int(oldest)) for file, number, oldest, _ in rows}
    for known in known_formats():
        row = next((value for file, value in documented.items() if known.file in file), None)
        assert row == (known.writes, known.reads_from), f"docs/formats.md, Versions: {known}"
    assert main(["formats", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["formats"]) == len(list(known_formats())) and "pyarrow" in told["versions"]
    assert main(["formats"]) == 0
    assert "receipt.json     writes 3, reads 1 to 3" in capsys.readouterr().out
