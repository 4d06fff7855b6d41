"""`curate train`: the bundled model on a plan; with `--from` as a branch of another run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from curate.commands.numbers import above_zero, not_negative, positive
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import held_out, opened, tokenizer_of
from curate.configuration import ConfigurationError
from curate.running.progress import Progress, say

if TYPE_CHECKING:
    from curate.products import Caches
    from mixtures import Loader, Plan
    from trainers.config import Config
    from trainers.speed import Peak
    from trainers.supervised import Place

PARTS: Final = ("log.jsonl", "checkpoints", "lock", "declaration.json", "notes.jsonl")
"""What the folder of a run has one of, once it is begun, declared or noted on."""


def add_train(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `train`."""
    command.set_defaults(command=train_command)
    command.add_argument("store", metavar="DIR", help=f"store with a result that has a plan: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    number: Callable[..., Any] = command.add_argument
    number("--run", type=Path, required=True, metavar="RUN", help="folder of the run: log and checkpoints")
    number("--steps", type=positive, metavar="N", help="updates, part of the schedule (default: all)")
    number("--width", type=int, default=64, metavar="W", help="width of the model (default: 64)")
    number("--experts", metavar="E,K", help="E experts instead of one feed-forward, of which each token goes to K")
    number("--qk-norm", choices=["head"], help="normalise queries and keys within each head")
    number("--matrices", choices=["adamw", "muon"], default="adamw", help="how matrices are updated (default: adamw)")
    number("--held-out", type=positive, default=64, metavar="N", help="held-out sequences per source (default: 64)")
    number(
        "--validate-every", type=positive, default=100, metavar="N", help="updates between validations (default: 100)"
    )
    number(
        "--checkpoint-every", type=positive, default=100, metavar="N", help="updates between checkpoints (default: 100)"
    )
    number("--keep", type=positive, default=2, metavar="K", help="last checkpoints that stay (default: 2)")
    number(
        "--keep-every", type=not_negative, default=0, metavar="N", help="checkpoints of every N updates stay for good"
    )
    number(
        "--strict",
        type=int,
        metavar="SHARDS",
        help="bits that do not depend on the number of devices: sums over so many shards, a power of two, in one tree",
    )
    number("--compute", choices=["float32", "bfloat16"], default="float32", help="type of products (default: float32)")
    number(
        "--peak",
        type=above_zero,
        metavar="FLOPS",
        help="operations a second that all devices can do, for MFU (default: what products of matrices reach)",
    )
    add_branch(command)
    number("--ray", type=positive, metavar="N", help="train in up to N workers of Ray, started again when one is lost")
    number("--address", metavar="ADDR", help="of --ray: running cluster, auto or HOST:PORT (default: start a Ray)")
    number("--hosts", metavar="HOST:PORT,N,I", help="this is process I of N that meet at process 0, HOST:PORT")


def add_branch(command: argparse.ArgumentParser) -> None:
    """Add the arguments that make a run a branch of another."""
    number: Callable[..., Any] = command.add_argument
    number("--from", dest="parent", type=Path, metavar="RUN", help="begin as a branch of this run, at --at")
    number("--at", type=int, metavar="S", help="step of a checkpoint of --from")
    number(
        "--cooldown", type=positive, metavar="N", help="of a branch: let the rate fall to zero over N updates, and end"
    )
    number("--rate", type=above_zero, metavar="R", help="of a branch: another learning rate")
    number(
        "--first",
        choices=["step", "plan"],
        default="step",
        help="what a branch reads first: the batch of its step, or the first of the plan (default: step)",
    )


def train_command(options: argparse.Namespace) -> int:
    """Train the bundled model on the plan, from its last checkpoint if there is one; print losses as they come."""
    from mixtures import Loader
    from mixtures.packings import packings_in

    if options.ray:
        return _supervised(options)
    if options.hosts:
        _join(options.hosts)
    from trainers.train import train

    check_run_folder(options.run)
    store = store_of(options)
    folder = options.recipe or last_result(store)
    result, plan, caches = opened(store, folder)
    opened_caches = caches.open()
    loader = Loader(plan, opened_caches, packings=packings_in(store, folder, plan, opened_caches))
    source, config = (loader, config_of(plan, options)) if options.parent is None else _branched(loader, options)
    watched = (WatchedUpdates if isinstance(source, Loader) else Watched)(source, config.steps)
    say("train: what the machine can do is measured and the model compiled first, in half a minute or so")
    done = train(
        watched,
        config,
        options.run,
        validation=held_out(plan, result.caches.get("validation"), options.held_out),
        validate_every=options.validate_every,
        token_bytes=_token_bytes(plan, caches),
        checkpoint_every=options.checkpoint_every,
        keep=options.keep,
        keep_every=options.keep_every,
        peak=_peak(config, options.peak),
        mesh=_mesh(config),
        continues=plan.agrees_with,
    )
    watched.progress.finish()
    for line in losses(options.run):
        print(line)
    if done.changed:
        print(f"resumed in another environment, equality is not promised: {'; '.join(done.changed)}", file=sys.stderr)
    print(f"step {done.step}, state {done.digest}")
    print(options.run / "log.jsonl")
    return 0


def check_run_folder(run: Path) -> None:
    """Check that a run may begin or go on in `run`.

    Raises:
        ConfigurationError: it is a file, or a folder of something else, which logs and checkpoints do not belong into.
    """
    if run.exists() and not run.is_dir():
        raise ConfigurationError(f"--run {run} is a file: give a folder, which need not be there")
    if run.is_dir() and any(run.iterdir()) and not any((run / name).exists() for name in PARTS):
        raise ConfigurationError(f"--run {run} holds other files and no run: give a folder of its own")


def config_of(plan: Plan, options: argparse.Namespace) -> Config:
    """Return what the one dial gives for this plan, or as much of it as is asked for."""
    from trainers.config import recipe, with_experts

    steps = min(plan.updates, options.steps or plan.updates)
    length = plan.sequences.length
    tokens = plan.update(steps - 1).stop * plan.batch * length
    facts: dict[str, int] = {"vocabulary": plan.vocabulary, "length": length, "batch": plan.batch, "steps": steps}
    config = recipe(options.width, tokens, **facts, matrices=options.matrices)
    if options.experts is not None:
        config = replace(config, model=with_experts(config.model, *_count_and_chosen(options.experts)))
    if options.qk_norm is not None:
        config = replace(config, model=replace(config.model, qk_norm=options.qk_norm))
    if options.strict is not None:
        config = replace(config, reduction="strict", shards=options.strict)
    return replace(config, compute=options.compute)


def _count_and_chosen(text: str) -> tuple[int, int]:
    """Return the two numbers of --experts.

    Raises:
        ConfigurationError: it is not two numbers.
    """
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise ConfigurationError(
            f"--experts {text}: two numbers, how many there are and how many a token goes to, as 8,2"
        )
    return int(parts[0]), int(parts[1])


def _branched(loader: Loader, options: argparse.Namespace) -> tuple[Any, Config]:
    """Return the loader and the configuration of a branch, which is begun unless it has been already."""
    from trainers.branch import branch
    from trainers.checkpoint import Checkpoints
    from trainers.config import unflat

    source = branch_loader(loader, options)
    begun = Checkpoints(options.run)
    if there := begun.steps():
        return source, unflat(begun.load(there[-1]).config)
    config = branch_config(options)
    branch(options.parent, options.at, options.run, config, source)
    return source, config


def branch_loader(loader: Loader, options: argparse.Namespace) -> Any:
    """Return what the branch that `options` tell of reads."""
    from trainers.branch import Later

    if options.at is None:
        raise ConfigurationError("--from takes --at, the step of a checkpoint of that run")
    return Later(loader, options.at) if options.first == "plan" else loader


def branch_config(options: argparse.Namespace) -> Config:
    """Return the configuration of the branch that `options` tell of, which is that of its parent but for what they say.

    Raises:
        ConfigurationError: the parent has no checkpoint of the step.
    """
    from trainers.branch import cooldown
    from trainers.checkpoint import Checkpoints
    from trainers.config import unflat

    parents = Checkpoints(options.parent)
    if options.at not in parents.steps():
        known = ", ".join(map(str, parents.steps())) or "none"
        raise ConfigurationError(f"{options.parent} has no checkpoint of step {options.at}, only of {known}")
    config = unflat(parents.load(options.at).config)
    if options.rate is not None:
        config = replace(config, optimizer=replace(config.optimizer, learning_rate=options.rate))
    if options.steps is not None:
        config = replace(config, steps=options.steps)
    if options.cooldown is not None:
        config = cooldown(config, options.at, options.cooldown)
    return config


def _supervised(options: argparse.Namespace) -> int:
    """Run the command in workers of Ray, and again when one of them is lost."""
    from curate.cluster.clusters import RunningRay, StartedRay
    from trainers.supervised import Workers, supervise

    cluster = RunningRay(options.address) if options.address else StartedRay(options.ray)
    given = {**vars(options), "ray": None, "hosts": None, "run": options.run.resolve(), "command": None}
    cluster.connect()
    try:
        work = partial(_in_worker, given)
        return supervise(work, Workers(most=options.ray), lambda line: print(line, file=sys.stderr)).result
    finally:
        cluster.disconnect()


def _in_worker(given: Mapping[str, Any], place: Place) -> int:
    place.join()
    return train_command(argparse.Namespace(**given))


def _join(hosts: str) -> None:
    from trainers.hosts import join_hosts

    try:
        coordinator, processes, process = hosts.split(",")
        join_hosts(coordinator, int(processes), int(process))
    except ValueError:
        raise ConfigurationError(f"--hosts is HOST:PORT,N,I, as 10.0.0.1:7000,2,0, got {hosts}") from None


def _mesh(config: Config) -> Any:
    """Return the mesh of as many devices as the run can be cut into, None for one."""
    import jax

    from trainers.mesh import check_mesh, make_mesh

    count = jax.device_count()
    while count > 1:
        mesh = make_mesh(devices=jax.devices()[:count])
        try:
            check_mesh(config, mesh)
        except ConfigurationError:
            if jax.process_count() > 1:
                raise
            count -= 1
        else:
            return mesh
    return None


def _peak(config: Config, given: float | None) -> Peak:
    from trainers.speed import Peak, measure_peak

    return measure_peak(config.compute) if given is None else Peak(given, "given")


def _token_bytes(plan: Plan, caches: Caches) -> Any:
    import numpy as np

    from transforms.token_bytes import token_bytes

    found = token_bytes(tokenizer_of(caches).encoder().file)
    return np.pad(found, (0, max(0, plan.vocabulary - len(found))))


class Watched:
    """A loader that shows how far training is."""

    def __init__(self, loader: Any, steps: int) -> None:
        """Watch the batches that `loader` gives for `steps` steps."""
        self.loader = loader
        self.progress = Progress("train", steps, 0, words=("steps", "tokens"))

    @property
    def digest(self) -> str:
        """Digest of the plan."""
        return str(self.loader.digest)

    def batch(self, step: int) -> Any:
        """Return the batch of `step`."""
        return self._seen(self.loader.batch(step))

    def _seen(self, batch: Any) -> Any:
        self.progress.advance(batch.tokens.size, 0)
        return batch


class WatchedUpdates(Watched):
    """The same for a loader whose updates have batches of their own."""

    def update(self, number: int) -> Any:
        """Return the batch of update `number`."""
        return self._seen(self.loader.update(number))

    def tokens_before(self, number: int) -> int:
        """Return the tokens of the updates before `number`."""
        return int(self.loader.tokens_before(number))


def losses(run: Path) -> list[str]:
    """Return the first and last loss of training, and of each held-out source, in words."""
    from trainers.log import read_log

    log = read_log(run)
    series: dict[str, list[tuple[int, float]]] = {}
    for entry in (*log.train, *log.validation):
        if entry["loss"] is not None:
            series.setdefault(entry.get("source", "training"), []).append((entry["step"], entry["loss"]))
    return [
        f"{name:<12} loss {values[0][1]:.3f} at step {values[0][0]}, {values[-1][1]:.3f} at step {values[-1][0]}"
        for name, values in series.items()
    ]
