"""`curate run` as a library call: build the stages of a recipe's outputs, make what is missing, commit the result."""

from __future__ import annotations

import os
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from curate.accounting.quarantine import check_passed, quarantined, read_lists
from curate.cluster.clusters import Cluster, Connection, RunningRay, StartedRay
from curate.cluster.runner import connected
from curate.configuration import ConfigurationError
from curate.datasets import Dataset, dataset_folder, open_dataset
from curate.digests import digest_json
from curate.inputs.apart import check_apart
from curate.isolation.crew import dismiss
from curate.isolation.guard import Isolation
from curate.isolation.limits import MEMORY, SECONDS, Limits
from curate.keys import Keys, Units, reading_name
from curate.products import Caches, ModelFiles, open_product
from curate.provenance import provenance
from curate.readers.chunks import CHUNK_ROWS
from curate.receipts import MANIFEST, FileEntry, committed_folders, read_manifest
from curate.recipes.compiling import compile_stages
from curate.recipes.models import models_in
from curate.recipes.recipe import Artifact, Outputs
from curate.recipes.stages import Stage, Stages, readers_of, transforms_of
from curate.running.compiling import compiling_told
from curate.running.engine import Engine, Made, fingerprint_inputs, run_stages
from curate.running.journal import Journal, agreement
from curate.running.progress import PREPARING, waiting
from curate.running.runners import LocalRunner, Runner
from curate.running.warm import is_cold, warm
from curate.store import Store, json_line, open_store, self_digested
from transforms.sample import Sample

RUNNERS = ("ray", "local")


@dataclass(frozen=True, slots=True)
class Result:
    """What a run made.

    Attributes:
        outputs: datasets by output name.
        caches: token caches by output name.
        stages: all datasets in the order of their stages.
        store: where it is.
        name: of the folder in it with the result's manifest, and its plan.
        digest: the digest to quote, over the content of all outputs, plan and batches.
        plan: digest of the compiled mixture, None without one.
        models: fitted models by output name.
    """

    outputs: Mapping[str, Dataset]
    stages: tuple[Dataset, ...]
    store: Store
    name: str
    digest: str
    caches: Mapping[str, Caches] = field(default_factory=dict)
    plan: str | None = None
    models: Mapping[str, ModelFiles] = field(default_factory=dict)

    @property
    def quarantined(self) -> dict[str, int]:
        """How many documents could not be processed, by what happened to them; see `curate.accounting.quarantine`."""
        counts: Counter[str] = Counter()
        for dataset in self.stages:
            if dataset.manifest["quarantine"]:
                counts.update(quarantined(dataset.statistics))
        return dict(sorted(counts.items()))

    @property
    def folder(self) -> Path:
        """The folder of a result in a local store."""
        return self.store.path(self.name)


def run(
    outputs: Outputs,
    store: str | Path | Store,
    *,
    name: str = "recipe",
    runner: str = "ray",
    workers: int | None = None,
    address: str | None = None,
    sample: str | None = None,
    modules: Sequence[types.ModuleType] = (),
    started: Callable[[Stage, bool], None] | None = None,
    quarantine: Sequence[str | Path] = (),
    document_seconds: float = SECONDS,
    document_memory: int = MEMORY,
    chunk_rows: int = CHUNK_ROWS,
    failpoint: Callable[[str], None] | None = None,
    recipe: Path | None = None,
) -> Result:
    """Make `outputs` real in `store`.

    Args:
        outputs: what a recipe returned.
        store: path or URL of the store, or the store; a folder is made when it is not there.
        name: of the recipe: the result stands in `<store>/<name>-<key>`.
        runner: "ray" or "local".
        workers: CPUs of the Ray that is started here, all where it is None; on a running cluster the most tasks at
            once. Changes no output.
        address: of a running Ray cluster, "auto" or "host:port"; None starts a Ray of its own.
        sample: share of documents to run on, as a decimal ("0.01"); part of every key.
        modules: modules that workers cannot import, as the recipe's own file.
        started: is told of each stage, and whether it was there already.
        quarantine: files with verdicts of other runs (`curate quarantine`): their documents are not tried again.
        document_seconds: after which a document is a suspect, and is tried alone with ten times as much; what its
            process waits for a processor does not count.
        document_memory: bytes of memory likewise.
        chunk_rows: rows per batch; changes no output.
        failpoint: of the `Store`, for tests.
        recipe: file of the recipe, whose text is kept beside the result; None where it was made in Python.

    Raises:
        ConfigurationError: the recipe cannot run as written; nothing was done.
        TaskError: a task failed; what was finished stays and is reused.
        StoreError, ConservationError: a broken promise.
    """
    text = _text_of(recipe)  # now: the file may be edited while the run lasts
    place = open_store(store, failpoint)
    with ExitStack() as opened:
        tell = opened.enter_context(compiling_told())
        with waiting(PREPARING):
            stages = compile_stages(outputs.products, parse_sample(sample))
            check_apart(readers_of(stages), place)
            if is_cold():
                tell()  # here already: workers may be the ones that compile
            check_ready(stages)
        isolation = _isolation(place, modules, quarantine, document_seconds, document_memory)
        place.remove_stale_spool_files()
        place.sweep_locks()
        opened.enter_context(place.writing())  # before the journal: where nothing can be written that is said, once
        journal = Journal(place)
        opened.callback(journal.close)
        opened.callback(dismiss)
        try:
            with make_runner(runner, workers, address, modules, lambda: warm(stages), journal) as chosen:
                engine = Engine(place, chosen, journal, chunk_rows, isolation)
                units = fingerprint_inputs(stages, engine)
                made = run_stages(stages, units, engine, started or (lambda stage, there: None))
            place.remove_stale_spool_files()  # of workers of a killed run that were alive when this one began
            result = commit_result(place, name, stages, units, made, outputs, text)
            if gone := result.quarantined:
                journal.write("quarantined", documents=gone)
            journal.write("recipe", name=name, folder=result.name, digest=result.digest)
            return result
        except BaseException as error:
            journal.write("stopped", error=_why(error))
            raise


def _text_of(recipe: Path | None) -> tuple[str, bytes] | None:
    return None if recipe is None else (recipe.name, recipe.read_bytes())


def _why(error: BaseException) -> str:
    """Return why a run stopped; what a signal raises has lost its name on the way through Ray."""
    return "a signal (Ctrl-C, SIGTERM)" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"


def _isolation(
    store: Store, modules: Sequence[types.ModuleType], quarantine: Sequence[str | Path], seconds: float, memory: int
) -> Isolation:
    """Return how a run isolates.

    Raises:
        ConfigurationError: a limit or a list is wrong, or `store` holds shards that were made without the list.
    """
    try:
        limits = Limits(seconds, memory)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    passed = read_lists(quarantine)
    check_passed(store, passed)
    return Isolation(limits, tuple(module.__name__ for module in modules), passed)


def check_ready(stages: Stages) -> None:
    """Ask every transform that has something to load whether it can.

    Raises:
        ConfigurationError: a model is missing or is another; the message has the remedy.
    """
    for transform in transforms_of(stages):
        if next(models_in(transform), None) is not None:
            continue  # its model is not there yet
        if (ready := getattr(transform, "ready", None)) is not None:
            try:
                ready()
            except RuntimeError as error:
                raise ConfigurationError(str(error)) from error


@contextmanager
def make_runner(
    runner: str,
    workers: int | None,
    address: str | None,
    modules: Sequence[types.ModuleType],
    before: Callable[[], None],
    journal: Journal,
) -> Iterator[Runner]:
    """Yield the runner of this name; `before` is called once on each machine, just before its workers start.

    Raises:
        ConfigurationError: there is none.
    """
    if runner not in RUNNERS:
        raise ConfigurationError(f"runner={runner!r} is not one of {', '.join(RUNNERS)}")
    if workers is not None and workers < 1:
        raise ConfigurationError(f"workers={workers}: give at least 1")
    if runner == "local":
        if address is not None:
            raise ConfigurationError(f"address={address!r}: the local runner is this process alone; use runner='ray'")
        yield LocalRunner(journal)
        return
    cluster: Cluster = StartedRay(workers or os.cpu_count() or 1) if address is None else RunningRay(address)
    connection = Connection(cluster, modules, before, lambda: agreement(journal))
    with connected(connection, None if address is None else workers, journal) as chosen:
        yield chosen


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


def commit_result(
    store: Store,
    name: str,
    stages: Stages,
    units: Units,
    made: Mapping[str, Made],
    outputs: Outputs | None = None,
    recipe: tuple[str, bytes] | None = None,
) -> Result:
    """Compile the mixture of `outputs`, if there is one, and write the manifest of a recipe's result.

    `recipe` is the name and the content of its file. What the store has under the same key stays as it is.
    """
    keys = Keys(units)
    products = {output: made[keys.stage(stage)] for output, stage in stages.outputs.items()}
    ordered = [made[keys.stage(stage)] for stage in stages.ordered]
    contents = {output: product.content for output, product in products.items()}
    manifest: dict[str, Any] = {"format": MANIFEST.stamp, "kind": "recipe", "name": name, "plan": None, "files": {}}
    key: dict[str, Any] = {"recipe": {output: product.key for output, product in products.items()}}
    if outputs is not None and (told := outputs.datasheet.to_json()):
        manifest["datasheet"], key["datasheet"] = told, digest_json(told)
    artifact, asked = None, None
    if outputs is not None and outputs.mixture is not None:
        artifact, batches, beside = _compile(outputs, products)
        asked = outputs.mixture.fields()
        manifest["plan"] = {"digest": artifact.digest, "batches": batches}
        contents |= {"plan": artifact.digest, **batches}
        key |= {"plan": artifact.digest}
    folder = dataset_folder(name, digest_json(key))
    manifest |= {
        "key": digest_json(key),
        "outputs": {output: _entry(product) for output, product in products.items()},
        "stages": [_entry(product) for product in ordered],
        "content": digest_json(contents),
    }
    if artifact is not None:
        manifest["files"] = {"plan.json": _publish_plan(store, artifact, f"{folder}/plan.json")}
        manifest["files"] |= _publish_files(store, folder, beside)
    origin = provenance([(reader, units[reading_name(reader)]) for reader in readers_of(stages)], recipe, asked)
    if (there := _there_already(store, folder, manifest)) is not None:
        _publish_files(store, folder, {name: origin.files[name] for name in sorted(origin.files) if name in there})
        return open_result(store, folder)
    manifest["files"] |= _publish_files(store, folder, origin.files)
    manifest["provenance"] = origin.told
    store.publish_bytes(json_line(self_digested(manifest)), f"{folder}/manifest.json")
    return open_result(store, folder)


def _publish_files(store: Store, folder: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        name: FileEntry(len(content), store.publish_bytes(content, f"{folder}/{name}")).to_json()
        for name, content in files.items()
    }


def _there_already(store: Store, folder: str, manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the files of what an earlier run made, if it is the same: it stays, with what that run told of itself."""
    if not store.exists(f"{folder}/manifest.json"):
        return None
    there = read_manifest(store, folder)
    same = all(there[field] == manifest[field] for field in ("key", "content", "plan", "outputs", "stages"))
    return there["files"] if same else None


def _compile(outputs: Outputs, products: Mapping[str, Made]) -> tuple[Artifact, dict[str, str], Mapping[str, bytes]]:
    """Return the plan, digests of the batches that are asked for, and what is stored beside it."""
    if outputs.mixture is None:
        raise TypeError("there is no mixture to compile")
    caches = {name: product.open() for name, product in products.items() if isinstance(product, Caches)}
    training = caches["training"]
    plan = outputs.mixture.compile(training, caches.get("validation", {}))
    digests = {
        f"batches {start}-{stop}": outputs.mixture.digest_batches(plan, training, start, stop)
        for start, stop in outputs.batches
    }
    return plan, digests, outputs.mixture.files(plan, training)


def _publish_plan(store: Store, plan: Artifact, name: str) -> dict[str, Any]:
    with store.spool() as path:
        plan.save(path)
        size = path.stat().st_size
        return FileEntry(size, store.publish(path, name)).to_json()


def _entry(product: Made) -> dict[str, Any]:
    manifest = product.manifest
    return {
        "kind": manifest["kind"],
        "name": product.name,
        "key": product.key,
        "content": product.content,
        "digest": manifest["digest"],
    }


def open_result(store: Store, folder: str) -> Result:
    """Open the committed result of a recipe.

    Raises:
        StoreError: it is missing or damaged.
        ConfigurationError: `folder` holds no recipe's result.
    """
    manifest = read_manifest(store, folder)
    if manifest["kind"] != "recipe":
        raise ConfigurationError(f"{store.url(folder)} is a {manifest['kind']}, not the result of a recipe")
    made = [_open(store, entry) for entry in manifest["stages"]]
    named = {(product.name, product.key): product for product in made}
    outputs = {name: named[entry["name"], entry["key"]] for name, entry in manifest["outputs"].items()}
    return Result(
        {name: product for name, product in outputs.items() if isinstance(product, Dataset)},
        tuple(product for product in made if isinstance(product, Dataset)),
        store,
        folder,
        manifest["content"],
        {name: product for name, product in outputs.items() if isinstance(product, Caches)},
        manifest["plan"]["digest"] if manifest["plan"] else None,
        {name: product for name, product in outputs.items() if isinstance(product, ModelFiles)},
    )


def _open(store: Store, entry: Mapping[str, Any]) -> Made:
    opens = open_dataset if entry["kind"] == "dataset" else open_product
    return opens(store, entry["name"], entry["key"])


def results_in(store: Store) -> list[str]:
    """Return the folders of all recipes' results in a store."""
    return [folder for folder in committed_folders(store) if read_manifest(store, folder)["kind"] == "recipe"]
