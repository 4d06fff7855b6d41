"""The table of commands: name, what it does in a line, and where its arguments and its work are defined.

Invariant: importing this module imports no command, so that `curate --help` and each command cost what they use.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final, cast


@dataclass(frozen=True, slots=True)
class Command:
    """One command: `fill` of `module` gets its parser, adds arguments and sets `command=`."""

    name: str
    module: str
    """Module below `curate.commands`."""
    fill: str
    about: str
    """What it does, as a line of help without a full stop."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Import the command and give its arguments to `parser`."""
        module = import_module(f"curate.commands.{self.module}")
        cast(Callable[[argparse.ArgumentParser], None], getattr(module, self.fill))(parser)


GROUPS: Final[dict[str, tuple[Command, ...]]] = {
    "set up": (
        Command("doctor", "doctor", "add_doctor", "say whether this machine can run recipes, and what it lacks"),
        Command("fetch", "fetch", "add_fetch", "fetch a pinned model into the user's data folder"),
        Command("formats", "formats", "add_formats", "list the versions of each file format that are written and read"),
    ),
    "make": (
        Command("run", "run", "add_run", "run a recipe: make what is missing, reuse what is there"),
        Command("plan", "plan", "add_plan", "say what a run would do, why, and what it would reuse; reads only"),
        Command(
            "list",
            "listing",
            "add_list",
            "pin the files of a source, one line each, for listing= of readers: nothing is hashed before a run then",
        ),
        Command("status", "status", "add_status", "say how a run stands, here or elsewhere, by its journal"),
        Command(
            "quarantine",
            "quarantine",
            "add_quarantine",
            "print the verdicts of a store, for curate run --quarantine",
        ),
    ),
    "look and check": (
        Command("look", "look", "add_look", "show a few records of a file, dataset or store, raw beside extracted"),
        Command(
            "documents", "documents", "add_documents", "write the documents of a result as plain files in a folder"
        ),
        Command("verify", "verify", "add_verify", "check every byte and every count of a store"),
        Command(
            "report",
            "report",
            "add_report",
            "write report.html, the page that shows what stayed, what went and why, and its values as report.json",
        ),
        Command(
            "index",
            "index",
            "add_index",
            "write a front page over many results: what each holds, which checks failed, which runs did not finish",
        ),
        Command(
            "audit",
            "audit",
            "add_audit",
            "write the report page about a folder of Parquet files that curate did not make; reads only",
        ),
        Command("card", "card", "add_card", "show the cards of what stages fitted: classifiers, levels, topics"),
    ),
    "duplicates and benchmarks": (
        Command("dedup-curve", "curve", "add_curve", "say how likely near duplicates of each similarity are found"),
        Command(
            "duplicates",
            "duplicates",
            "add_duplicates",
            "browse groups of duplicates: who stayed, who went, what differs",
        ),
        Command(
            "templates",
            "templates",
            "add_templates",
            "show what deduplications left out of comparisons: licence headers, …",
        ),
        Command(
            "contamination",
            "contamination",
            "add_contamination",
            "look for benchmarks in a finished dataset, token cache or folder of files; write lists of clean items",
        ),
    ),
    "tokens and training": (
        Command("explain", "tokens", "add_explain", "say what a step of training reads"),
        Command("batch", "tokens", "add_batch", "show the batch of a step, decoded, documents apart"),
        Command("trace", "tokens", "add_trace", "lead a token of a batch back to its document and raw record"),
        Command(
            "train",
            "training",
            "add_train",
            "train the bundled model on the plan; the same command goes on where it was stopped",
        ),
        Command(
            "watch",
            "runs",
            "add_watch",
            "write run.html, the page of a training run, again and again until it ends; 1 when a check fails",
        ),
        Command("log", "runs", "add_log", "feed TensorBoard, W&B (offline) or trackio from the log of a training run"),
        Command("sample", "models", "add_sample", "let the model of a run write a text"),
        Command("export-model", "models", "add_export_model", "write the model of a run in the layout of Hugging Face"),
        Command(
            "ablate", "ablate", "add_ablate", "leave out one part of a recipe at a time and say which earn their place"
        ),
        Command("propose", "propose", "add_propose", "propose weights for a mixture, from small runs of many"),
        Command("compare", "compare", "add_compare", "say which of several mixtures is better, by training on each"),
        Command(
            "ladder", "ladder", "add_ladder", "train small runs on a plan and forecast the run on all of it from them"
        ),
        Command("declare", "declare", "add_declare", "write down what a run shall show and what would be its failure"),
        Command("note", "declare", "add_note", "add a note to the diary of a run, which nobody changes later"),
        Command("publish", "publish", "add_publish", "write a mixture and its runs as static files to check"),
        Command("rebuild", "publish", "add_rebuild", "check published files and compile the mixture from them"),
        Command(
            "diff", "plan_diff", "add_diff", "say in what the plans of two stores differ, and which steps they share"
        ),
        Command("tokens", "caches", "add_tokens", "show the tokens of a document of a cache, with borders drawn"),
        Command("export", "caches", "add_export", "write a token cache in the format of another loader"),
        Command("import", "caches", "add_import", "make a token cache of a Levanter cache or a .ds file of datatrove"),
        Command("extend", "caches", "add_extend", "write a cache and caches of new documents as a new generation"),
    ),
    "look after a store": (
        Command("where", "store", "add_where", "find each dataset, ledger, sample and cache that holds a document"),
        Command("gc", "store", "add_gc", "list what no kept result names, and remove it with --delete"),
    ),
}
"""The commands, by what one does with them, in the order of the help."""


def all_commands() -> Iterator[Command]:
    """Yield every command, in the order of the help."""
    for commands in GROUPS.values():
        yield from commands
