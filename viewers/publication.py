"""What is published of a mixture and its runs: static files that an outsider can check, without any text or token.

    OUT/published.json            every other file with its digest, and its own
    OUT/index.html                what there is: the mixture, the runs, failures first
    OUT/mixture/                  plan.json, mixture.json (compiles to the plan again), packings, manifest.json
    OUT/report.html, report.json  as they stand in the store
    OUT/recipe/                   the recipe's file
    OUT/runs/<name>/              log.jsonl, declaration.json, forecast.json, notes.jsonl, run.html

Invariants: files are copied as they are; a run that failed is published as the others are. `check` reads nothing but
OUT. Checkpoints stay at home. Cost: the logs, and the packings of a packed plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from curate.configuration import ConfigurationError
from curate.digests import digest_file
from curate.formats import Format, FormatError
from curate.store import Store, StoreError, check_self_digest, json_line, self_digested
from mixtures.errors import PlanError
from mixtures.plan import Plan
from mixtures.published import NAME as MIXTURE
from mixtures.published import rebuild, write_mixture
from trainers.evidence.diary import NAME as NOTES
from trainers.evidence.diary import read_diary
from trainers.evidence.listing import ListedRun, list_runs, run_folders
from viewers.frame import document, write_whole
from viewers.markup import Child, element
from viewers.panels.panel import Panel
from viewers.run_index import runs_panel
from viewers.tables import code, facts
from viewers.visible import shortened

NAME: Final = "published.json"
FORMAT: Final = Format(1, "check it with the version that wrote it", prefix="published ")
OF_A_RUN: Final = ("log.jsonl", "declaration.json", "forecast.json", NOTES, "run.html")
OF_A_STORE: Final = ("report.html", "report.json")


@dataclass(frozen=True, slots=True)
class Checked:
    """What `check` found: the plan that was compiled again, the runs, and what is wrong."""

    plan: str
    runs: tuple[ListedRun, ...]
    problems: tuple[str, ...]

    @property
    def failed(self) -> tuple[ListedRun, ...]:
        """The runs that failed, which is no fault of what is published."""
        return tuple(run for run in self.runs if run.has_failed)


def publish(
    store: Store,
    result: str,
    mixture: Mapping[str, Any],
    out: Path,
    *,
    runs: Sequence[Path] = (),
    recipe: Sequence[Path] = (),
) -> Path:
    """Write what is published of `result` in `store` to the empty folder `out`, and return its `published.json`.

    Args:
        store: where the result is.
        result: its folder.
        mixture: what `mixtures.published.mixture_json` returned for it.
        out: made if absent.
        runs: folders of runs, or folders of such folders.
        recipe: files to publish beside it: the recipe, its lock file.

    Raises:
        ConfigurationError: `out` holds something, a folder holds no run, or two runs have one name.
        StoreError: the result is damaged.
    """
    if out.exists() and any(out.iterdir()):
        raise ConfigurationError(f"{out} holds something already: publish into a new folder")
    manifest = store.read_json(f"{result}/manifest.json")
    files = [f"{result}/{name}" for name in manifest["files"]]
    for name in [f"{result}/manifest.json", *files]:
        _write(out / "mixture" / name.removeprefix(f"{result}/"), store.read_bytes(name))
    write_mixture(out / "mixture" / MIXTURE, mixture)
    for name in OF_A_STORE:
        if store.exists(name):
            _write(out / name, store.read_bytes(name))
    for path in recipe:
        _write(out / "recipe" / path.name, path.read_bytes())
    for name, folder in _named(runs).items():
        for file in OF_A_RUN:
            if (folder / file).exists():
                _write(out / "runs" / name / file, (folder / file).read_bytes())
    write_whole(out / "index.html", render_publication(out, str(mixture["plan"])).encode())
    entries = {path.relative_to(out).as_posix(): digest_file(path) for path in _files(out)}
    _write(out / NAME, json_line(self_digested({"format": FORMAT.stamp, "plan": mixture["plan"], "files": entries})))
    return out / NAME


def check(out: Path) -> Checked:
    """Return what the files in `out` come to: each digest compared, the plan compiled again, each run judged.

    Raises:
        ConfigurationError: `out` is nothing that was published.
    """
    try:
        value = FORMAT.lift(check_self_digest(json.loads((out / NAME).read_bytes()), NAME), NAME)
        told = dict(value["files"])
    except (OSError, ValueError, KeyError, TypeError, StoreError, FormatError) as error:
        raise ConfigurationError(f"{out} holds nothing that was published: {error}") from error
    problems = list(_other_files(out, told))
    try:
        plan = rebuild(out / "mixture").digest
        Plan.load(out / "mixture" / "plan.json", plan)
    except (PlanError, ConfigurationError) as error:
        plan = ""
        problems.append(str(error))
    problems += [
        f"runs/{folder.name}/{NOTES} was changed at line {', '.join(map(str, broken))}"
        for folder in run_folders(out / "runs")
        if (broken := read_diary(folder).broken)
    ]
    runs = tuple(list_runs(out / "runs"))
    problems += [f"run {run.name}: {run.reason}" for run in runs if run.outcome == "unreadable"]
    changed = [run.name for run in runs if run.verdict == "not readable"]
    problems += [f"run {name}: its declaration or forecast was changed" for name in changed]
    return Checked(plan, runs, tuple(problems))


def render_publication(out: Path, plan: str) -> str:
    """Return the front page of what stands in `out`."""
    runs = list_runs(out / "runs")
    pairs: list[tuple[str, Child]] = [
        ("Plan", code(plan)),
        ("To check", code("curate rebuild DIR")),
        ("Report", element("a", "report.html", href="report.html") if (out / "report.html").exists() else "none"),
        ("Files", ", ".join(shortened(path.relative_to(out).as_posix()) for path in _files(out))),
    ]
    lede = (
        "Look whether the plan comes out: curate rebuild compares each file with its digest in published.json and "
        "compiles the mixture again from mixture/mixture.json, without any text."
    )
    mixture = Panel("mixture", "Mixture", lede, facts(pairs))
    header = element(
        "header",
        element("p", "Published", class_="kicker"),
        element("h1", "A mixture and its runs"),
        element("p", element("code", plan), class_="digest"),
    )
    panels = [mixture, runs_panel({"runs": runs})]
    return document(
        "Published mixture",
        header,
        element("main", *(panel.markup() for panel in panels if panel is not None), class_="index"),
        element("footer", element("p", "Made by curate. This file loads nothing."), class_="colophon"),
    )


def _named(runs: Sequence[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for place in runs:
        folders = run_folders(place)
        if not folders:
            raise ConfigurationError(f"{place} holds no training run: neither a log nor a declaration")
        for folder in folders:
            name = place.resolve().name if folder == place else f"{place.resolve().name}-{folder.name}"
            if name in found:
                raise ConfigurationError(f"two runs are called {name}: {found[name]} and {folder}. Rename one")
            found[name] = folder
    return found


def _other_files(out: Path, told: Mapping[str, str]) -> Iterator[str]:
    """Yield what stands in `out` otherwise than `told`, or not at all, or in addition."""
    there = {path.relative_to(out).as_posix(): path for path in _files(out)}
    there.pop(NAME, None)
    for name, digest in told.items():
        if name not in there:
            yield f"{name} is missing"
        elif digest_file(there[name]) != digest:
            yield f"{name} is not the file that was published"
    yield from (f"{name} was not published" for name in sorted(there.keys() - told.keys()))


def _files(out: Path) -> list[Path]:
    return sorted(path for path in out.rglob("*") if path.is_file())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
