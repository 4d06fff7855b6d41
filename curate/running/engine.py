"""Running stages: what is there is reused, what is missing is made, and a manifest commits what is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from curate.caches.tokenization import Tokenization
from curate.committing.commit import MadeDataset, commit_dataset
from curate.committing.gathered import Receipts
from curate.committing.gathering import gather
from curate.datasets import Dataset, has_dataset, open_dataset
from curate.deduplication import Deduplication
from curate.grouping import Grouping
from curate.holdout import HoldingOut
from curate.inputs.files import (
    FileUnit,
    FingerprintJob,
    InputFile,
    StatIndex,
    fingerprint_items,
    list_files,
    place_of,
    unhashed,
    units_of,
)
from curate.inputs.repeats import Repeats
from curate.isolation.guard import ISOLATED, Isolation
from curate.joining import Joining
from curate.keys import Keys, Units, reading_name, shared_key
from curate.planning.costs import kind_of
from curate.products import Caches, MadeOf, ModelFiles, TokenizerFile, commit_caches, commit_model, open_product
from curate.readers.chunks import CHUNK_ROWS, InputError
from curate.readers.parquet import check_columns
from curate.readers.reader import Reader
from curate.receipts import finished
from curate.recipes.cells import Cells, TrainedTokenizer
from curate.recipes.graph import CutRepeats, DatasetWide, Deduplicate, DropAlike, DropEqual, Group, HoldOut, Join
from curate.recipes.models import FittedModel, Fitting
from curate.recipes.stages import (
    MAKES_DATASETS,
    DocumentStage,
    Stage,
    Stages,
    WideStage,
    describe_stage,
    readers_of,
    steps_with,
)
from curate.repeated import Repetition
from curate.running.documents import DocumentJob, ShardUnit
from curate.running.jobs import Item, Job, TaskError
from curate.running.journal import Journal
from curate.running.progress import Progress
from curate.running.runners import Attempt, Runner
from curate.semantic import SemanticDeduplication
from curate.store import Store
from curate.training import train
from curate.upkeep.compaction import Compact, Compaction
from curate.writer import Codec
from transforms.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs jobs on a runner, reuses finished shards, and keeps the journal."""

    store: Store
    runner: Runner
    journal: Journal
    chunk_rows: int = CHUNK_ROWS
    isolation: Isolation = ISOLATED

    def receipts(self, job: Job, items: Sequence[Item]) -> Receipts:
        """Return the receipts of all `items`, in order; those that are missing are made.

        Raises:
            TaskError: an item failed.
        """
        receipts = gather(self, [item.key for item in items], self.make(job, items))
        self.journal.write("receipts", job=job.name, shards=len(receipts), bytes=receipts.bytes)
        return receipts

    def make(self, job: Job, items: Sequence[Item], again: frozenset[str] = frozenset()) -> frozenset[str]:
        """Make those of `items` that have no receipt, and those of `again`; return the keys of what was made.

        Raises:
            TaskError: an item failed.
        """
        there = finished(self.store, [item.key for item in items])
        missing = [item for item in items if item.key in again or item.key not in there]
        return frozenset(attempt.item.key for attempt in self.attempts(job, missing, len(items)))

    def attempts(self, job: Job, items: Sequence[Item], total: int) -> Iterator[Attempt]:
        """Run `items`, `total` of which are asked for, with progress and journal; yield each as it is done."""
        if not items:
            return
        size = sum(item.bytes for item in items)
        progress = Progress(job.name, total, size, total - len(items))
        self.journal.job(job.name, total, len(items), size)
        try:
            for attempt in self.runner.run(job, items):
                self.journal.task(job.name, attempt)
                progress.advance(attempt.documents, attempt.item.bytes)
                yield attempt
        except TaskError as error:
            self.journal.write("failure", **{"job": job.name, "error": str(error), **error.details})
            raise
        finally:
            progress.finish()


def fingerprint_inputs(stages: Stages, engine: Engine) -> Units:
    """Return the fingerprinted units of every reader; files that the stat index does not know are hashed.

    Raises:
        ConfigurationError: a root is missing, nothing matches, or a Parquet file lacks a declared column.
    """
    index = StatIndex(engine.store)
    readers = {reading_name(reader): reader for reader in readers_of(stages)}
    files = {name: _listed(reader) for name, reader in readers.items()}
    unknown = [
        each for name, reader in readers.items() for each in unhashed(reader, units_of(reader, files[name], index)[1])
    ]
    items = fingerprint_items(list(dict.fromkeys(unknown)))
    for attempt in engine.attempts(FingerprintJob(engine.store), items, len(items)):
        index.put_hashed(attempt.item.unit, attempt.result)
    return {name: units_of(reader, files[name], index)[0] for name, reader in readers.items()}


def _listed(reader: Reader) -> list[InputFile]:
    files = list_files(reader)
    if reader.format == "parquet":
        for file in files:
            with place_of(file.root).open(file.path) as opened:
                check_columns(opened, file.url, reader)
    return files


Made = Dataset | TokenizerFile | ModelFiles | Caches
"""What a stage made."""


def run_stages(stages: Stages, units: Units, engine: Engine, started: Callable[[Stage, bool], None]) -> dict[str, Made]:
    """Make every stage real and return what each made by its key.

    `started` is told of each stage, and whether it was there already.
    """
    made: dict[str, Made] = {}
    keys = Keys(units)
    for stage in stages.ordered:
        key = keys.stage(stage)
        there = find_made(engine.store, stage, key)
        reused = there is not None
        started(stage, reused)
        if there is None:
            there = _run_stage(stage, keys, [made[keys.stage(parent)] for parent in stage.inputs], engine)
        made[key] = there
        size = 0 if reused else _bytes_of(datasets_of([there]))
        engine.journal.write("stage", name=stage.name, key=key, reused=reused, content=there.content, bytes=size)
    return made


def _bytes_of(datasets: Sequence[Dataset]) -> int:
    return sum(shard["bytes"] for dataset in datasets for shard in dataset.each_shard(["bytes"]))


def _run_stage(stage: Stage, keys: Keys, inputs: Sequence[Made], engine: Engine) -> Made:
    key, datasets = keys.stage(stage), datasets_of(inputs)
    read = _bytes_of(datasets)
    if isinstance(stage, DocumentStage) and stage.reader is not None:
        read = sum(unit.size for unit in keys.units[reading_name(stage.reader)])
    engine.journal.write("stage begun", name=stage.name, key=key, kind=kind_of(stage), bytes=read)
    if isinstance(stage, WideStage):
        return _run_wide(stage, key, inputs, engine)
    return _run_documents(stage, keys, inputs, engine)


def find_made(store: Store, stage: Stage, key: str) -> Made | None:
    """Return what `stage` made under `key`, or None where it is not there or a shard of it was removed."""
    if not has_dataset(store, stage.name, key):
        return None
    made = open_made(store, stage, key)
    return made if is_whole(made) else None


def is_whole(made: Made) -> bool:
    """Return whether every shard has its receipt still: who removes a damaged shard gets it back by running again."""
    if not isinstance(made, Dataset):
        return True
    keys = [shard["key"] for shard in made.each_shard(["key"])]
    return len(finished(made.store, keys)) == len(set(keys))


def open_made(store: Store, stage: Stage, key: str) -> Made:
    """Open what `stage` made under `key`."""
    if isinstance(stage, WideStage) and not isinstance(stage.operation, MAKES_DATASETS):
        return open_product(store, stage.name, key)
    return open_dataset(store, stage.name, key)


def datasets_of(inputs: Sequence[Made]) -> tuple[Dataset, ...]:
    """Return the datasets among `inputs`."""
    return tuple(made for made in inputs if isinstance(made, Dataset))


def _run_wide(stage: WideStage, key: str, inputs: Sequence[Made], engine: Engine) -> Made:
    operation, datasets = stage.operation, datasets_of(inputs)
    described = describe_stage(stage)
    if isinstance(operation, Compact):
        joined = Compaction(stage.name, operation, datasets[0], stage.schema, engine).run()
        return commit_dataset(engine.store, MadeDataset(stage.name, key, described, datasets, stage.schema, joined))
    if isinstance(operation, DatasetWide):
        receipts, inner = _choose_documents(stage, operation, key, inputs, engine)
        return commit_dataset(
            engine.store, MadeDataset(stage.name, key, described, datasets, stage.schema, receipts, tuple(inner))
        )
    if isinstance(operation, FittedModel):
        trained = any(isinstance(parent, TrainedTokenizer) for parent in operation.inputs)
        tokenizer = _trained(operation, inputs) if trained else None
        fitted = operation.fit.fit(Fitting(stage.name, key, datasets, engine, stage.forbids, tokenizer))
        made_of = MadeOf(stage.name, key, described, inputs, fitted.inner)
        return commit_model(engine.store, made_of, fitted.files, fitted.card)
    if isinstance(operation, TrainedTokenizer):
        return train(stage.name, operation, key, described, datasets[0], engine)
    found = operation.tokenizer or _trained(operation, inputs)
    work = Tokenization(datasets[0], found, operation.by, key, engine, operation.layout, operation.fast)
    caches, inner, backend = work.run()
    return commit_caches(engine.store, MadeOf(stage.name, key, described, inputs, [*inner, caches]), caches, backend)


def _choose_documents(
    stage: WideStage,
    operation: DatasetWide,
    key: str,
    inputs: Sequence[Made],
    engine: Engine,
) -> tuple[Receipts, list[Receipts]]:
    """Run an operation that makes a dataset of datasets; return its receipts and what it made on the way."""
    datasets = datasets_of(inputs)
    match operation:
        case Group():
            return Grouping(stage, operation, key, datasets, engine).run()
        case Join():
            return Joining(stage, operation, key, datasets, engine).run()
        case CutRepeats() | DropEqual():
            return Repetition(stage, operation, key, datasets, engine).run()
        case DropAlike():
            return SemanticDeduplication(stage, operation, key, datasets, engine).run()
        case Deduplicate():
            deduplication = Deduplication(stage, operation, key, datasets, engine)
            engine.journal.estimate(stage.name, str(deduplication.estimate()))
            return deduplication.run()
        case HoldOut():
            shared = shared_key(operation, [made.key for made in inputs])
            return HoldingOut(stage, operation, shared, datasets, engine).run()


def _trained(operation: Cells | FittedModel, inputs: Sequence[Made]) -> Tokenizer:
    (wanted,) = (parent for parent in operation.inputs if isinstance(parent, TrainedTokenizer))
    (file,) = (made for made in inputs if isinstance(made, TokenizerFile))
    return file.tokenizer(wanted.bos, wanted.eos)


def _run_documents(stage: DocumentStage, keys: Keys, made: Sequence[Made], engine: Engine) -> Dataset:
    inputs, models = datasets_of(made), tuple(model for model in made if isinstance(model, ModelFiles))
    files = {model.key: model for model in models}
    there = {id(model): files[keys.stage(fits)].file(model.fit.file) for model, fits in stage.models}
    steps = steps_with(stage.steps, lambda model: there[id(model)])
    guard = engine.isolation.guard(steps)
    codec: Codec = "lz4" if stage.as_read else "zstd"
    job = DocumentJob(
        engine.store, stage.name, stage.reader, steps, stage.schema, stage.forbids, engine.chunk_rows, guard, codec
    )
    inner: list[Receipts] = []
    if stage.reader is None:
        receipts = engine.receipts(job, shard_items(stage, keys, inputs[0]))
    else:
        mine = keys.units[reading_name(stage.reader)]
        receipts = engine.receipts(job, _file_items(stage, keys, mine))
        if stage.reader.keyed and len(mine) > 1:
            mine, inner = _without_repeats(stage, mine, receipts, engine)
            if any(unit.repeats for unit in mine):
                receipts = engine.receipts(job, _file_items(stage, keys, mine))
        check_damage(stage.reader, receipts)
    described = describe_stage(stage)
    return commit_dataset(
        engine.store,
        MadeDataset(stage.name, keys.stage(stage), described, inputs, stage.schema, receipts, tuple(inner), models),
    )


def shard_items(stage: DocumentStage, keys: Keys, upstream: Dataset) -> list[Item]:
    """Return an item for each shard of `upstream` that keeps anything."""
    chain = keys.chain(stage)
    return [
        Item(chain.key(shard["key"]), shard["unit"], ShardUnit(shard["key"]), shard["bytes"])
        for shard in upstream.each_shard(["key", "unit", "bytes", "content"])
        if shard["content"] is not None
    ]


def check_damage(reader: Reader, receipts: Receipts) -> None:
    """Raise where more of a source is damaged than its budget allows.

    Raises:
        InputError: the message has the share, the reasons, and where to look.
    """
    mine = receipts.statistics().get("reading", {}).get(reader.source, {})
    for unit, places in (("bytes", ("stored", "stream")), ("rows", ("row",))):
        total = sum(mine.get("total", {}).get(place, 0) for place in places)
        gaps = mine.get("gaps", {})
        lost = sum(counted.get(place, 0) for counted in gaps.values() for place in places)
        if total and Fraction(lost, total) > Fraction(reader.max_damaged):
            raise InputError(
                f"source {reader.source!r}: {lost:,} of {total:,} {unit} lie in gaps ({', '.join(sorted(gaps))}), more "
                f"than the share {reader.max_damaged} of max_damaged. Is it the right reader for these files? The "
                "ledgers of its shards have every gap; raise max_damaged to go on without them"
            )


def _file_items(stage: DocumentStage, keys: Keys, units: Sequence[FileUnit]) -> list[Item]:
    made = zip(keys.shards(stage, units), units, strict=True)
    return [Item(key, unit.path, unit, unit.size) for key, unit in made]


def _without_repeats(
    stage: DocumentStage, units: Sequence[FileUnit], receipts: Receipts, engine: Engine
) -> tuple[list[FileUnit], list[Receipts]]:
    """Return the units with the records that an earlier file holds too marked as repeats."""
    shards, records = [], 0
    for receipt in receipts:
        shards.append(receipt.key)
        listed = receipt.files.get("keys.parquet")
        records += (listed.rows or 0) if listed else 0
    paths = tuple(unit.path for unit in units)
    repeats, inner = Repeats(engine, f"{stage.name}: repeats", stage.sources[0], tuple(shards), paths).find(records)
    return [replace(unit, repeats=repeats.get(i, frozenset())) for i, unit in enumerate(units)], inner
