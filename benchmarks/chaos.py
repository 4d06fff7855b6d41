"""Chaos: runs that are killed everywhere, resumed, and compared byte for byte with one that nobody disturbed.

    python -m benchmarks.chaos [--size small|full] [--seed N] [--seconds S]

Points: for each kind of published file (stage, file name) and each of `curate.store.POINTS`, a process is stopped by
SIGKILL at a seeded one of its occurrences, and the next process goes on in the same store: one chain of kills per
point. Random: the driver, or a worker, of a run on Ray is stopped by SIGKILL at a seeded time; a stopped driver's
workers may write on while the next run begins. Afterwards every file of the store but the journal and the spool must
equal the undisturbed run's, no finished task may have been done again, and no spool file may be left.

The last line is one JSON object; the exit status is 1 when a check fails. Linux only (/proc).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from curate import Column, Dataset, Outputs, deduplicate, hold_out, read_jsonl, tokenize, train_tokenizer
from curate.digests import digest_file
from curate.run import run
from curate.store import POINTS
from transforms.minhash import MinHash
from transforms.pii import MaskPII
from transforms.user_function import EditText

MARK: Final = "CURATE_CHAOS"  # in the environment of every process that a random kill may find: only ours carry it
WORKERS: Final = ("ray::run_item", "ray::IDLE")  # titles of Ray's workers; without its agents a node is dead
WORDS: Final = [a + b for a in ("ka", "lo", "mi", "su", "te", "vo", "ra") for b in ("ren", "tal", "mos", "bik", "dun")]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run: files per source, documents per file, random kills."""

    files: int
    documents: int
    random_kills: int


SIZES: Final = {"small": Size(2, 40, 2), "full": Size(6, 1500, 5)}


def write_inputs(root: Path, size: Size, seed: int) -> None:
    """Write two sources of JSON lines: one keyed, with records that two files hold; one compressed, with damage."""
    draw = random.Random(seed)
    pool = [" ".join(draw.choice(WORDS) for _ in range(60)) for _ in range(size.documents)]
    for number in range(size.files):
        lines = [
            {"name": f"{number}-{n}", "text": f"{draw.choice(pool)} mail to a{n}@mail.example.net ", "year": n}
            for n in range(size.documents)
        ]
        lines.append({"name": "everywhere", "text": "a record that every file holds", "year": None})
        _write(root / "keyed" / f"{number}.jsonl", [json.dumps(line) for line in lines])
        found = [json.dumps({"text": f"{draw.choice(pool)} {draw.choice(WORDS)}"}) for _ in range(size.documents)]
        _write(root / "pages" / f"{number}.jsonl.gz", [*found, "no json", '{"text": ""}'])


def _write(path: Path, lines: Sequence[str]) -> None:
    content = "".join(line + "\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def documents(root: Path) -> tuple[Dataset, Dataset]:
    """Return training and held-out documents of both sources without duplicates."""
    keyed = read_jsonl(root / "keyed", source="keyed", columns={"key": "name", "year": Column("year", "int64")})
    pages = read_jsonl(root / "pages", source="pages")
    strip = EditText(str.strip, reason="white space", version=1)
    unique = deduplicate(
        keyed.apply(strip, MaskPII(), name="keyed"), pages.apply(strip, name="pages"), method=MinHash(threshold="0.7")
    )
    return hold_out(unique, documents=5, per="source")


def outputs(root: Path) -> Outputs:
    """Return a recipe with every kind of stage."""
    train, valid = documents(root)
    upper = valid.apply(EditText(str.upper, reason="case", version=1), name="upper")
    return Outputs(upper=upper, cells=tokenize(train, train_tokenizer(train, 300), by="source"))


def tree(store: Path) -> dict[str, str]:
    """Return name → digest of every file of a store but the journal and the spool."""
    names = {path.relative_to(store).as_posix(): path for path in sorted(store.rglob("*")) if path.is_file()}
    return {name: digest_file(path) for name, path in names.items() if not name.startswith(("runs/", "spool/"))}


def tasks_done(store: Path) -> Counter[str]:
    """Return how often each shard's task is in the journals of a store."""
    counts: Counter[str] = Counter()
    for path in store.glob("runs/*/journal.jsonl"):
        for line in path.read_bytes().splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # cut short by a kill
            if event["event"] == "task" and event["key"]:
                counts[event["key"]] += 1
    return counts


@dataclass(slots=True)
class Outcome:
    """What was seen: kills that hit, trees that differ, tasks done again, spool files left, points never reached."""

    kills: int = 0
    points: int = 0
    different: int = 0
    again: int = 0
    spooled: int = 0
    missed: list[str] = field(default_factory=list)

    def look(self, store: Path, expected: dict[str, str], label: str) -> None:
        """Compare a finished store with the undisturbed one."""
        found = tree(store)
        wrong = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
        if wrong:
            self.different += 1
            print(f"{label}: {len(wrong)} files differ, the first is {wrong[0]}", flush=True)
        self.again += sum(count - 1 for count in tasks_done(store).values())
        self.spooled += len(list((store / "spool").iterdir()))


# --- a kill at each point --------------------------------------------------------------------------------------------


def kind_of(name: str, store: Path) -> tuple[str, str]:
    """Return (stage, file) of the published file `name`: kinds, not single shards or datasets."""
    folder, _, file = name.rpartition("/")
    if folder.startswith("shards/"):
        task = str(json.loads((store / folder / "receipt.json").read_bytes())["task"])
        return task if ": " in task else "documents", file
    top = folder.partition("/")[0]
    manifest = store / top / "manifest.json"
    return str(json.loads(manifest.read_bytes())["kind"]) if manifest.exists() else top, file


def record_points(root: Path, store: Path, log: Path) -> list[str]:
    """Run undisturbed and return every point that was passed, in order.

    In a child, because TensorStore allows no fork of a process that has used it. This process makes the documents
    first, so that its children find the kernels loaded.
    """
    with tempfile.TemporaryDirectory(dir=store.parent) as aside:
        _run_local(Outputs(*documents(root)), Path(aside))
    passed = store.parent / "passed"

    def record(point: str) -> None:
        with passed.open("a") as lines:
            lines.write(point + "\n")

    if status := in_child(partial(_run_local, outputs(root), store, record), log):
        raise RuntimeError(f"the undisturbed run ended with status {status}:\n{log.read_text()}")
    return passed.read_text().splitlines()


def choose_points(passed: Sequence[str], store: Path, point: str, draw: random.Random) -> list[str]:
    """Return one occurrence of each kind of file at `point`, in the order in which a run passes them."""
    by_kind: dict[tuple[str, str], list[int]] = {}
    for place, entry in enumerate(passed):
        name, _, moment = entry.rpartition(":")
        if moment == point:
            by_kind.setdefault(kind_of(name, store), []).append(place)
    return [passed[place] for place in sorted(draw.choice(places) for places in by_kind.values())]


def in_child(work: Callable[[], object], log: Path) -> int:
    """Do `work` in a forked process and return its exit status, negative for a signal."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killer(target: str) -> Callable[[str], None]:
    """Return a failpoint that stops its process, as by a power cut, at `target`."""

    def fail(passed: str) -> None:
        if passed == target:
            os.kill(os.getpid(), signal.SIGKILL)

    return fail


def _run_local(made: Outputs, store: Path, failpoint: Callable[[str], None] | None = None) -> None:
    run(made, store, runner="local", failpoint=failpoint)


def kill_everywhere(root: Path, work: Path, expected: dict[str, str], passed: Sequence[str], seed: int) -> Outcome:
    """Kill one process at each kind of point, each going on where the last was stopped, and compare the stores."""
    outcome = Outcome()
    for point in POINTS:
        store, log = work / f"killed-{point}", work / f"{point}.log"
        for target in choose_points(passed, work / "undisturbed", point, random.Random(f"{seed} {point}")):
            outcome.points += 1
            status = in_child(partial(_run_local, outputs(root), store, killer(target)), log)
            if status == -signal.SIGKILL:
                outcome.kills += 1
            else:
                outcome.missed.append(target)
                print(f"{target}: not killed, exit status {status}\n{log.read_text()}", flush=True)
        if in_child(partial(_run_local, outputs(root), store), log):
            print(f"{point}: the last run failed\n{log.read_text()}", flush=True)
        outcome.look(store, expected, f"killed at {point}")
    return outcome


# --- random kills on Ray ---------------------------------------------------------------------------------------------


def start_ray_run(root: Path, store: Path, mark: str, log: Path) -> subprocess.Popen[bytes]:
    """Start a driver in a process of its own and return it when its first task is done."""
    command = [sys.executable, "-m", "benchmarks.chaos", "--child", str(root), str(store)]
    with log.open("w") as errors:
        child = subprocess.Popen(command, env={**os.environ, MARK: mark}, stderr=errors)
    while not any(store.glob("shards/*/receipt.json")):
        if child.poll() is not None:
            raise RuntimeError(f"the run on Ray ended without a task:\n{log.read_text()}")
        time.sleep(0.01)
    return child


def marked(mark: str) -> dict[int, str]:
    """Return pid → command line of the processes that carry our mark, and of their descendants.

    A worker of Ray writes its title over its environment, so that it is known by its parent only.
    """
    needle = f"{MARK}={mark}".encode()
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    ours: set[int] = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        pid = int(folder.name)
        try:
            parents[pid] = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
            commands[pid] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                ours.add(pid)
        except OSError:
            continue  # gone, or somebody else's
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: commands[pid] for pid in sorted(ours) if commands.get(pid)}


def stop(pid: int) -> bool:
    """Send SIGKILL; return whether the process was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def stop_all(mark: str) -> None:
    """Stop every process that carries our mark, and wait until it is gone."""
    while left := marked(mark):
        for pid in left:
            stop(pid)
        time.sleep(0.05)


def random_kill(root: Path, store: Path, work: Path, mark: str, victim: str, delay: float) -> bool:
    """Kill a driver or worker `delay` seconds after the first task, have the run finished; return whether it hit."""
    child = start_ray_run(root, store, mark, work / "ray.log")
    time.sleep(delay)
    if victim == "driver":
        hit = child.poll() is None and stop(child.pid)
        child.wait()
        _run_local(outputs(root), store)
        stop_all(mark)  # what the dead driver's workers had in hand is left in the spool
        _run_local(outputs(root), store)
        return hit
    workers = [pid for pid, command in marked(mark).items() if command.startswith(WORKERS)]
    hit = any(stop(pid) for pid in workers[:1])
    if child.wait():
        raise RuntimeError(f"a run that lost a worker failed:\n{(work / 'ray.log').read_text()}")
    return hit


def kill_at_random(root: Path, work: Path, expected: dict[str, str], kills: int, seed: int, until: float) -> Outcome:
    """Kill drivers and workers in turn at seeded times, each in a store of its own, and compare the stores."""
    outcome, draw, mark = Outcome(), random.Random(f"{seed} random"), uuid.uuid4().hex
    try:
        child = start_ray_run(root, work / "ray", mark, work / "ray.log")
        began = time.monotonic()
        if child.wait():
            raise RuntimeError(f"the run on Ray failed:\n{(work / 'ray.log').read_text()}")
        seconds = time.monotonic() - began
        outcome.look(work / "ray", expected, "on Ray")
        for number in range(kills):
            if time.monotonic() > until:
                break
            store, victim = work / f"random-{number}", ("driver", "worker")[number % 2]
            delay = draw.uniform(0, seconds * 0.7)
            hit = random_kill(root, store, work, mark, victim, delay)
            print(f"{victim} {'killed' if hit else 'was gone'} after {delay:.2f} s of {seconds:.2f} s", flush=True)
            outcome.points += 1
            outcome.kills += hit
            outcome.look(store, expected, f"{victim} killed at random")
    finally:
        stop_all(mark)
    return outcome


# --- report ----------------------------------------------------------------------------------------------------------


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder, in memory where that is possible: every published file is synced twice."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-chaos-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def checks_of(at_points: Outcome, at_random: Outcome) -> dict[str, tuple[int, str, bool]]:
    """Return name → (value, what it must be, whether it is)."""
    values = {
        "stores that differ after kills at every point": (at_points.different, 0),
        "points that no process reached": (len(at_points.missed), 0),
        "kinds of points": (at_points.points, at_points.kills),
        "stores that differ after random kills on Ray": (at_random.different, 0),
        "finished tasks done again": (at_points.again, 0),
        "spool files left": (at_points.spooled + at_random.spooled, 0),
    }
    return {name: (value, f"= {wanted}", value == wanted) for name, (value, wanted) in values.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chaos and print its report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=480.0, help="begin no further random kill after this time")
    parser.add_argument("--no-ray", action="store_true", help="leave the random kills out")
    parser.add_argument("--child", nargs=2, metavar=("INPUTS", "STORE"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        run(outputs(Path(given.child[0])), given.child[1], runner="ray", workers=2)
        return 0
    until = time.monotonic() + given.seconds
    size = SIZES[given.size]
    with work_folder() as work:
        write_inputs(work / "in", size, given.seed)
        passed = record_points(work / "in", work / "undisturbed", work / "log")
        expected = tree(work / "undisturbed")
        at_points = kill_everywhere(work / "in", work, expected, passed, given.seed)
        print(f"{at_points.kills} of {at_points.points} kinds of points killed, {len(expected)} files", flush=True)
        at_random = Outcome()
        if not given.no_ray:
            at_random = kill_at_random(work / "in", work, expected, size.random_kills, given.seed, until)
    checks = checks_of(at_points, at_random)
    report: dict[str, Any] = {
        "name": f"chaos, {given.size}, seed {given.seed}",
        "unit": "kills survived",
        "ours": at_points.kills + at_random.kills,
        "peers": {},
        "ratio": None,
        "checks": checks,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("pyarrow", "ray")}},
    }
    print(json.dumps(report))
    return 0 if all(right for _, _, right in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
