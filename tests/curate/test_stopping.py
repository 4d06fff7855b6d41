"""Ctrl-C and SIGTERM: the exit status, a store that can be gone on with, and nothing left running.

The recipe that is stopped waits in every file but the first until it has been: it cannot finish before the signal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.command_line import main
from curate.running.stopping import stoppable
from curate.store import Store
from curate.upkeep.status import status_of
from tests.curate.processes import descendants, left_of
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def signals_are_heard() -> Iterator[None]:
    """Commands hear Ctrl-C, also where the tests themselves run in the background and must not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


RECIPE = """
import pathlib, time
from curate import Outputs, read_jsonl, recipe
from transforms.user_function import EditText

def waiting(text: str) -> str:
    where = pathlib.Path(__file__).parent
    if not (where / "go on").exists():
        with (where / "begun").open("a") as file:
            file.write("x")
    first_file, second_document = text.startswith("document 0 "), text.split()[2] == "1"
    while second_document and not first_file and not (where / "go on").exists():
        time.sleep(0.02)
    return text.upper()

@recipe
def stuck(data: str) -> Outputs:
    documents = read_jsonl(pathlib.Path(data), source="lines")
    return Outputs(documents.apply(EditText(waiting, reason="case", version=1)))
"""


def write(folder: Path) -> None:
    (folder / "in").mkdir()
    for number in range(6):
        lines = [json.dumps({"text": f"document {number} {n} of a recipe that waits"}) for n in range(4)]
        (folder / "in" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "recipe.py").write_text(RECIPE)


def arguments(folder: Path, *more: str) -> list[str]:
    return ["run", str(folder / "recipe.py"), "--store", str(folder / "store"), "--set", f"data={folder / 'in'}", *more]


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start the command as a shell does, in a process group of its own, and return when a document is in hand."""
    write(folder)
    command = [sys.executable, "-m", "curate.command_line", *arguments(folder, *more)]
    child = subprocess.Popen(
        command, cwd=Path(__file__).parents[2], start_new_session=True, stderr=subprocess.PIPE, text=True
    )

    def at_work() -> bool:
        assert child.poll() is None, child.communicate()
        return (folder / "begun").exists() and len((folder / "begun").read_text()) >= 6

    wait_for(at_work)
    return child


def go_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the same command to its end in this process, and return what it printed."""
    (folder / "go on").touch()
    assert main(arguments(folder, "--runner", "local")) == 0
    return capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.ray
def test_run_on_ray_that_is_stopped_says_so_leaves_nothing_running_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    child = start(tmp_path, "--workers", "2")
    below = descendants(child.pid)
    assert len(below) > 3
    os.killpg(child.pid, signal.SIGINT)  # a terminal sends it to all processes of the command
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 128 + signal.SIGINT, errors
    assert "curate: stopped. What was finished is kept: the same command goes on from there" in errors
    assert "Traceback" not in errors
    assert left_of(below) == {}
    store = Store(tmp_path / "store")
    status = status_of(store)
    assert (status.state, status.error, status.running) == ("stopped", "a signal (Ctrl-C, SIGTERM)", {})
    assert not store.names("spool")
    out = go_on(tmp_path, capsys)
    (tmp_path / "store").rename(tmp_path / "stopped")
    assert go_on(tmp_path, capsys) == out


def test_run_in_process_that_is_stopped_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    child = start(tmp_path, "--runner", "local")
    child.send_signal(signal.SIGTERM)
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 143, errors
    assert status_of(Store(tmp_path / "store")).state == "stopped"
    done = len(list((tmp_path / "store").glob("shards/*/receipt.json")))
    assert done >= 1
    out = go_on(tmp_path, capsys)
    assert "24 documents" in out


def test_second_signal_ends_the_command_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom curate.running.stopping import stoppable\n"
        "with stoppable():\n    try:\n        print('on', flush=True); time.sleep(60)\n"
        "    except KeyboardInterrupt:\n        print('off', flush=True); time.sleep(60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for word in ("on\n", "off\n"):
        assert child.stdout.readline() == word
        child.send_signal(signal.SIGINT)
    assert child.wait(120) == -signal.SIGINT
    child.stdout.close()


def test_signals_have_their_handlers_back_afterwards_and_other_threads_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stoppable() as stop:
        assert signal.getsignal(signal.SIGTERM) is stop
        elsewhere: list[bool] = []

        def look() -> None:
            with stoppable() as other:
                elsewhere.append(signal.getsignal(signal.SIGTERM) is other)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert elsewhere == [False]
    assert signal.getsignal(signal.SIGTERM) is before
