"""Runs on a cluster of several nodes that come and go, all of them on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from curate.cluster.clusters import RunningRay, processes_of, wait_for_end
from curate.cluster.runner import RayRunner
from curate.cluster.versions import differences, versions_here
from curate.cluster.worker import Agreement, NodeError
from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.running.journal import events_of, runs_in
from curate.store import Store
from curate.upkeep.status import status_of
from tests.curate.ray_jobs import Acting, items
from tests.waiting import wait_for

RECIPE = """
import pathlib, time
from curate import Outputs, read_jsonl, recipe
from transforms.user_function import EditText

def waiting(text: str) -> str:
    while not (pathlib.Path(__file__).parent / "go on").exists():
        time.sleep(0.02)
    return text.upper()

@recipe
def stuck(data: str) -> Outputs:
    documents = read_jsonl(pathlib.Path(data), source="lines")
    return Outputs(documents.apply(EditText(waiting, reason="case", version=1)))
"""
FILES = 12
ROOT = Path(__file__).parents[2]


def write(folder: Path) -> None:
    (folder / "in").mkdir()
    for number in range(FILES):
        lines = [json.dumps({"text": f"document {number} {n} of a recipe that waits"}) for n in range(5)]
        (folder / "in" / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "recipe.py").write_text(RECIPE)


def arguments(folder: Path, store: str, *more: str) -> list[str]:
    return ["run", str(folder / "recipe.py"), "--store", str(folder / store), "--set", f"data={folder / 'in'}", *more]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head node with one CPU."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_gcs_server_port_wait_time_s", "120")  # on a busy machine
        made = Cluster(initialize_head=True, head_node_args=node(1) | {"include_dashboard": False})
    yield made
    processes = [process for each in made.list_all_nodes() for process in processes_of(each)]
    made.shutdown()
    wait_for_end(processes)


def node(cpus: int) -> dict[str, Any]:
    return {"num_cpus": cpus, "object_store_memory": 100 << 20}


def seen(store: Path, kind: str) -> list[dict[str, Any]]:
    place = Store(store)
    return [event for run in runs_in(place)[-1:] for event in events_of(place, run) if event["event"] == kind]


def has_work(store: Path, node: Any, child: subprocess.Popen[str]) -> Callable[[], bool]:
    """Return whether a task that makes a shard began on a node."""

    def look() -> bool:
        assert child.poll() is None, child.communicate()
        began = [event for event in seen(store, "began") if event["job"] != "fingerprint inputs"]
        return node.node_id in {event["node"] for event in began}

    return look


def has_changed(store: Path, change: str, child: subprocess.Popen[str]) -> bool:
    """Return whether the run saw a node leave or join: what happens after that is no race with its looking."""
    assert child.poll() is None, child.communicate()
    return any(event["change"] == change for event in seen(store, "node"))


@pytest.mark.ray
@pytest.mark.slow
def test_run_loses_a_node_and_gains_one_and_makes_each_shard_once(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    store = tmp_path / "store"
    second = cluster.add_node(**node(1))
    command = [sys.executable, "-m", "curate.command_line", *arguments(tmp_path, "store", "--address", cluster.address)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(has_work(store, second, child))
    of_second = processes_of(second)
    cluster.remove_node(second, allow_graceful=False)
    wait_for_end(of_second)
    wait_for(lambda: has_changed(store, "left", child))
    third = cluster.add_node(wait=False, **node(1))
    wait_for(has_work(store, third, child))
    wait_for(lambda: has_changed(store, "joined", child))
    (tmp_path / "go on").touch()
    out, errors = child.communicate(timeout=120)
    of_third = processes_of(third)
    cluster.remove_node(third)
    wait_for_end(of_third)
    assert child.returncode == 0, errors
    assert errors.count("a node was lost: ") == 1
    lost = seen(store, "lost")
    assert lost and {event["node"] for event in lost} <= {second.node_id}
    assert all(event["exit"].startswith(("NodeDiedError", "WorkerCrashedError")) for event in lost)
    done = Counter(event["key"] for event in seen(store, "task") if event["job"] != "fingerprint inputs")
    assert set(done.values()) == {1}
    assert {event["change"] for event in seen(store, "node")} == {"left", "joined"}
    status = status_of(Store(store))
    assert (status.state, len(status.lost)) == ("finished", len(lost))
    assert main(arguments(tmp_path, "local", "--runner", "local")) == 0
    assert capsys.readouterr().out == out


@pytest.mark.ray
def test_process_that_is_connected_already_uses_that_ray_and_leaves_it_as_it_is(
    ray_of_two: RayRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import ray

    write(tmp_path)
    (tmp_path / "go on").touch()
    list(ray_of_two.run(Acting(tmp_path), items("number 1")))
    assert main(arguments(tmp_path, "store")) == 0
    assert ray.is_initialized()
    list(ray_of_two.run(Acting(tmp_path), items("number 1")))
    assert main(arguments(tmp_path, "other", "--address", "auto")) == 2
    assert "connected to a Ray already" in capsys.readouterr().err


@pytest.mark.ray
def test_cluster_whose_versions_differ_is_refused_with_a_list(cluster: Any, tmp_path: Path) -> None:
    write(tmp_path)
    program = (
        "import sys; from curate.cluster.versions import versions_here; from curate.command_line import main; "
        "from curate.running import journal; "
        "journal.versions_here = lambda: {**versions_here(), 'numba': '0.0.1'}; sys.exit(main(sys.argv[1:]))"
    )
    given = arguments(tmp_path, "store", "--address", cluster.address)
    done = subprocess.run(
        [sys.executable, "-c", program, *given], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2, done.stderr
    assert f"numba: {versions_here()['numba']} there, 0.0.1 here" in done.stderr
    assert "Install the same requirements.lock" in done.stderr
    assert not seen(tmp_path / "store", "task")


def test_node_that_does_not_see_the_store_is_named_with_the_remedy(tmp_path: Path) -> None:
    agreement = Agreement(Store(tmp_path), "runs/r/node-check", b"token", versions_here())
    with pytest.raises(NodeError, match=r"cannot see the store .*FileNotFoundError.*a folder that every node mounts"):
        agreement.check()
    Store(tmp_path).put("runs/r/node-check", b"another store's")
    with pytest.raises(NodeError, match="it sees another store in that place"):
        agreement.check()
    Store(tmp_path).put("runs/r/node-check", b"token")
    agreement.check()


def test_versions_name_python_curate_and_the_libraries_that_reach_output() -> None:
    found = versions_here()
    assert {"python", "curate", "pyarrow", "numba", "numpy", "ray", "lxml", "llvmlite"} <= set(found)
    assert "not installed" not in found.values()
    assert differences(found, found) == []
    assert differences({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == [
        "b: 3 there, 2 here",
        "c: 4 there, not installed here",
    ]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ray://head:10001", "ray job submit"),
        ("head", "give auto, or HOST:PORT"),
    ],
)
def test_address_that_cannot_work_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, message: str
) -> None:
    write(tmp_path)
    assert main(arguments(tmp_path, "store", "--address", address)) == 2
    assert message in capsys.readouterr().err


def test_address_of_a_cluster_has_one_of_two_forms() -> None:
    assert RunningRay("auto").address == "auto"
    assert RunningRay("10.0.0.1:6379").patience > 0
    with pytest.raises(ConfigurationError):
        RunningRay("10.0.0.1:port")
    with pytest.raises(ConfigurationError, match="nobody answers there"):
        RunningRay("127.0.0.1:1").connect()


def test_local_runner_takes_no_address(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    assert main(arguments(tmp_path, "store", "--runner", "local", "--address", "auto")) == 2
    assert "use runner='ray'" in capsys.readouterr().err
