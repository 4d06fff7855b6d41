"""`curate run` as a library call: build the stages of a recipe's outputs, make what is missing, commit the result."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from curate.configuration import ConfigurationError
from curate.datasets import Dataset, dataset_folder, open_dataset
from curate.digests import digest_json
from curate.journal import Journal
from curate.readers.chunks import CHUNK_ROWS
from curate.receipts import FORMAT, read_manifest
from curate.recipe import Outputs
from curate.runners import LocalRunner, Runner, ray_runner
from curate.running import Engine, Units, fingerprint_inputs, run_stages
from curate.stages import Stage, Stages, compile_stages, stage_key, transforms_of
from curate.store import Store, json_line, self_digested
from curate.warm import warm
from transforms.sample import Sample

RUNNERS = ("ray", "local")


@dataclass(frozen=True, slots=True)
class Result:
    """What a run made: its outputs by name, all its stages in order, its folder, and the digest to quote."""

    outputs: Mapping[str, Dataset]
    stages: tuple[Dataset, ...]
    folder: Path
    digest: str


def run(
    outputs: Outputs,
    store: str | Path,
    *,
    name: str = "recipe",
    runner: str = "ray",
    workers: int = 2,
    sample: str | None = None,
    modules: Sequence[types.ModuleType] = (),
    started: Callable[[Stage, bool], None] | None = None,
    chunk_rows: int = CHUNK_ROWS,
    failpoint: Callable[[str], None] | None = None,
) -> Result:
    """Make `outputs` real in `store`.

    Args:
        outputs: what a recipe returned.
        store: folder of the store; made when it is not there.
        name: of the recipe: the result stands in `<store>/<name>-<key>`.
        runner: "ray" or "local".
        workers: CPUs that Ray uses; changes no output.
        sample: share of documents to run on, as a decimal ("0.01"); part of every key.
        modules: modules that workers cannot import, as the recipe's own file.
        started: is told of each stage, and whether it was there already.
        chunk_rows: rows per batch; changes no output.
        failpoint: of the `Store`, for tests.

    Raises:
        ConfigurationError: the recipe cannot run as written; nothing was done.
        TaskError: a task failed; what was finished stays and is reused.
        StoreError, ConservationError: a broken promise.
    """
    place = Store(Path(store).resolve(), failpoint)
    stages = compile_stages(outputs.datasets, parse_sample(sample))
    check_ready(stages)
    place.root.mkdir(parents=True, exist_ok=True)
    place.remove_stale_spool_files()
    journal = Journal(place)
    try:
        with make_runner(runner, workers, modules, lambda: warm(stages)) as chosen:
            engine = Engine(place, chosen, journal, chunk_rows)
            units = fingerprint_inputs(stages, engine)
            made = run_stages(stages, units, engine, started or (lambda stage, there: None))
        result = commit_result(place, name, stages, units, made)
        journal.write("recipe", name=name, folder=result.folder.name, digest=result.digest)
        return result
    except BaseException as error:
        journal.write("stopped", error=f"{type(error).__name__}: {error}")
        raise
    finally:
        journal.close()


def check_ready(stages: Stages) -> None:
    """Ask every transform that has something to load whether it can.

    Raises:
        ConfigurationError: a model is missing or is another; the message has the remedy.
    """
    for transform in transforms_of(stages):
        if (ready := getattr(transform, "ready", None)) is not None:
            try:
                ready()
            except RuntimeError as error:
                raise ConfigurationError(str(error)) from error


@contextmanager
def make_runner(
    runner: str, workers: int, modules: Sequence[types.ModuleType] = (), before: Callable[[], None] = lambda: None
) -> Iterator[Runner]:
    """Yield the runner of this name; `before` is called once, just before workers start.

    Raises:
        ConfigurationError: there is none.
    """
    if runner == "local":
        yield LocalRunner()
    elif runner == "ray":
        if workers < 1:
            raise ConfigurationError(f"workers={workers}: give at least 1")
        with ray_runner(workers, modules, before) as chosen:
            yield chosen
    else:
        raise ConfigurationError(f"runner={runner!r} is not one of {', '.join(RUNNERS)}")


def parse_sample(share: str | None) -> Sample | None:
    """Return the sample of this share, None for all documents.

    Raises:
        ConfigurationError: not a decimal above 0 and at most 1.
    """
    if share is None:
        return None
    try:
        return Sample(Fraction(share))
    except ValueError as error:
        raise ConfigurationError(f"sample {share!r}: {error}") from None


def commit_result(store: Store, name: str, stages: Stages, units: Units, made: Mapping[str, Dataset]) -> Result:
    """Write the manifest of a recipe's result: its outputs, its stages, and the digest over the outputs' content."""
    outputs = {output: made[stage_key(stage, units)] for output, stage in stages.outputs.items()}
    ordered = tuple(made[stage_key(stage, units)] for stage in stages.ordered)
    key = digest_json({"recipe": {output: dataset.key for output, dataset in outputs.items()}})
    digest = digest_json({output: dataset.content for output, dataset in outputs.items()})
    folder = dataset_folder(name, key)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "kind": "recipe",
        "name": name,
        "key": key,
        "outputs": {output: _entry(dataset) for output, dataset in outputs.items()},
        "stages": [_entry(dataset) for dataset in ordered],
        "content": digest,
    }
    store.publish_bytes(json_line(self_digested(manifest)), f"{folder}/manifest.json")
    return Result(outputs, ordered, store.path(folder), digest)


def _entry(dataset: Dataset) -> dict[str, Any]:
    return {"name": dataset.name, "key": dataset.key, "content": dataset.content, "digest": dataset.manifest["digest"]}


def open_result(store: Store, folder: str) -> Result:
    """Open the committed result of a recipe.

    Raises:
        StoreError: it is missing or damaged.
        ConfigurationError: `folder` holds no recipe's result.
    """
    manifest = read_manifest(store, folder)
    if manifest["kind"] != "recipe":
        raise ConfigurationError(f"{store.path(folder)} is a {manifest['kind']}, not the result of a recipe")
    stages = tuple(open_dataset(store, entry["name"], entry["key"]) for entry in manifest["stages"])
    by_key = {(dataset.name, dataset.key): dataset for dataset in stages}
    outputs = {name: by_key[entry["name"], entry["key"]] for name, entry in manifest["outputs"].items()}
    return Result(outputs, stages, store.path(folder), manifest["content"])


def results_in(store: Store) -> list[str]:
    """Return the folders of all recipes' results in a store."""
    folders = [path.parent.name for path in sorted(store.root.glob("*/manifest.json"))]
    return [folder for folder in folders if read_manifest(store, folder)["kind"] == "recipe"]
