"""docs/cluster.md is followed to the letter on two nodes of one machine; its job files run with made-up schedulers."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from curate.command_line import parser
from tests.curate.processes import descendants, left_of
from tests.waiting import wait_for

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "cluster.md").read_text("utf-8")
JOBS = ROOT / "examples" / "cluster"
ELSEWHERE = ("sbatch", "kubectl", "chmod")  # chmod has nothing to say


def shell_lines() -> list[str]:
    return [line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]


def free_ports(count: int) -> list[int]:
    with_sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in with_sockets]
    for server in with_sockets:
        server.close()
    return ports


class Machines:
    """Two machines of the page, both this one: other ports, other folders, little memory."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, uuid.uuid4().hex
        self.port, self.dashboard, self.agent, client, agent = free_ports(5)
        self.head = f"--temp-dir={folder / 'r'} --dashboard-port={self.dashboard} --ray-client-server-port={client}"
        self.head += f" --dashboard-agent-listen-port={agent}"  # another test's Ray may have the usual one
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.surroundings = {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CURATE_PAGE": self.mark,
        }

    def line(self, line: str) -> str:
        """Return a line of the page as it reads on this machine."""
        line = line.replace("/shared", str(self.folder)).replace("=6379", f"={self.port}")
        line = line.replace("--dashboard-host=head", "--dashboard-host=127.0.0.1")
        line = line.replace("head:6379", f"127.0.0.1:{self.port}").replace("head:8265", f"127.0.0.1:{self.dashboard}")
        if line.startswith("ray start"):
            line += " --num-cpus=1 --object-store-memory=100000000"
            line += f" {self.head}" if "--head" in line else f" --dashboard-agent-listen-port={self.agent}"
        return line

    def do(self, line: str) -> str:
        """Do a line and return what it printed."""
        if export := re.fullmatch(r"export (\w+)=(.*)", line):
            self.surroundings[export[1]] = export[2]
            return ""
        here = {"RAY_ADDRESS": f"127.0.0.1:{self.port}"} if line.startswith("curate run") else {}  # for auto
        for _ in range(60):
            done = subprocess.run(
                ["bash", "-c", line], env=self.surroundings | here, capture_output=True, text=True, timeout=180
            )
            if "No available agent to submit job" not in done.stderr + done.stdout:
                break
            time.sleep(1)  # the job server of a head that has just started is not up yet
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def processes(self) -> set[int]:
        """Return the processes that were started with our mark, and those below them."""
        marked = set()
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and f"CURATE_PAGE={self.mark}".encode() in (folder / "environ").read_bytes():
                    marked.add(int(folder.name))
        return marked.union(*(descendants(pid) for pid in marked))

    def stop(self) -> None:
        """End our processes, and no other Ray on this machine, as `ray stop` would."""
        for pid in (pids := self.processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert left_of(pids) == {}


@pytest.fixture
def machines() -> Iterator[Machines]:
    folder = Path(tempfile.mkdtemp(prefix="c"))  # paths of sockets have a limit
    made = Machines(folder)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder)


@pytest.mark.ray
@pytest.mark.slow
def test_page_is_followed_on_two_nodes_and_gives_what_a_run_in_process_gives(machines: Machines) -> None:
    (machines.folder / "data").mkdir()
    for number in range(4):
        (machines.folder / "data" / f"{number}.jsonl").write_text(f'{{"text": "document {number} of the page"}}\n')
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    (machines.folder / "recipe.py").write_text(source)
    printed = {line: machines.do(machines.line(line)) for line in shell_lines() if not line.startswith(ELSEWHERE)}
    (ran,) = (out for line, out in printed.items() if line.startswith("curate run"))
    (submitted,) = (out for line, out in printed.items() if line.startswith("ray job submit"))
    (state,) = (out for line, out in printed.items() if line.startswith("ray job status"))
    shown = next(out for line, out in printed.items() if line.startswith("curate status"))
    assert "SUCCEEDED" in state.upper()
    assert "finished after" in shown
    digest = re.findall(r"^digest: \w{64}$", ran, re.M)
    assert digest and digest[0] in submitted
    alone = machines.do(
        f"curate run {machines.folder}/recipe.py --store {machines.folder}/alone --set data={machines.folder}/data "
        "--runner local"
    )
    assert alone == ran


def test_options_of_ray_on_the_page_and_in_the_job_files_exist() -> None:
    texts = [*shell_lines(), *(JOBS / "job.sbatch").read_text().replace("\\\n", " ").splitlines()]
    for command in ("start", "job submit", "job status", "status"):
        lines = [found for text in texts for found in re.findall(rf"\bray {command} ([^&>]*)", text)]
        assert lines
        shown = subprocess.run(
            [sys.executable, "-m", "ray.scripts.scripts", *command.split(), "--help"], capture_output=True, text=True
        ).stdout
        for line in lines:
            for option in re.findall(r"(--[a-z-]+)", line.partition(" -- ")[0]):
                assert option in shown, f"ray {command} has no {option}"


def test_page_names_every_exit_status_and_both_job_files() -> None:
    for status in (0, 2, 3, 130, 143):
        assert re.search(rf"^\| {status} \|", PAGE, re.M)
    for path in JOBS.iterdir():
        assert f"examples/cluster/{path.name}" in PAGE


def test_job_of_kubernetes_runs_a_command_that_exists_with_one_image_and_a_token() -> None:
    job: dict[str, Any] = yaml.safe_load((JOBS / "rayjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    command = shlex.split(job["spec"]["entrypoint"])
    options = parser().parse_args(command[1:])
    assert (command[0], options.address, options.store) == ("curate", "auto", "/shared/store")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    assert len({container["image"] for group in groups for container in group["template"]["spec"]["containers"]}) == 1
    for group in groups:
        spec = group["template"]["spec"]
        mounted = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in spec["volumes"]} == {"shared", "recipes"}
        assert group["rayStartParams"]["disable-usage-stats"] == "true"
    from importlib.metadata import version

    assert cluster["rayVersion"] == version("ray")


FAKES = {
    "scontrol": 'echo "scontrol $*" >> "$SEEN"; if [ "$1" = show ]; then echo node1; echo node2; fi',
    "srun": 'echo "srun $*" >> "$SEEN"; while [ "$1" != ray ]; do shift; done; exec "$@"',
    "ray": 'echo "ray $*" >> "$SEEN"; if [ "$1" = start ]; then exec sleep 30; fi',
    "curate": 'trap "sleep 0.3; exit 143" TERM; echo "curate $*" >> "$SEEN"; sleep "$RUNS" & wait',
}


def start_batch(folder: Path, runs: str) -> subprocess.Popen[bytes]:
    """Start the job of Slurm with commands that are made up."""
    (folder / "bin").mkdir()
    for name, body in FAKES.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{body}\n")
        (folder / "bin" / name).chmod(0o755)
    slurm = {"SUBMIT_DIR": str(folder), "JOB_NODELIST": "node[1-2]", "JOB_NUM_NODES": "2", "CPUS_PER_TASK": "4"}
    return subprocess.Popen(
        ["bash", str(JOBS / "job.sbatch"), "/shared/recipe.py", "/shared/store", "data=/shared/data", "n=1"],
        env={
            "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SEEN": str(folder / "seen"),
            "RUNS": runs,
            **{f"SLURM_{name}": value for name, value in {**slurm, "JOB_ID": "7"}.items()},
        },
        start_new_session=True,
    )


def end_batch(job: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)


def test_job_of_slurm_starts_ray_on_all_nodes_and_runs_a_command_that_exists(tmp_path: Path) -> None:
    job = start_batch(tmp_path, "0")
    try:
        assert job.wait(120) == 0
        wait_for(lambda: len(re.findall("^ray start", (tmp_path / "seen").read_text(), re.M)) == 2)  # beside the run
    finally:
        end_batch(job)
    seen = (tmp_path / "seen").read_text().splitlines()
    starts = [line for line in seen if line.startswith("ray start")]
    assert len(starts) == 2
    assert any("--head --port=6379 --num-cpus=4" in line for line in starts)
    assert any("--address=node1:6379 --num-cpus=4" in line for line in starts)
    assert any("--nodes=1 --ntasks=1 --exclude=node1" in line for line in seen if line.startswith("srun"))
    (run,) = (shlex.split(line) for line in seen if line.startswith("curate"))
    options = parser().parse_args(run[1:])
    assert (options.address, options.set) == ("node1:6379", ["data=/shared/data", "n=1"])


def test_job_of_slurm_whose_time_is_up_stops_the_run_and_queues_again(tmp_path: Path) -> None:
    job = start_batch(tmp_path, "30")
    try:
        wait_for(lambda: (tmp_path / "seen").exists() and "curate" in (tmp_path / "seen").read_text())
        job.send_signal(signal.SIGTERM)
        assert job.wait(120) == 143
    finally:
        end_batch(job)
    assert "scontrol requeue 7" in (tmp_path / "seen").read_text()
