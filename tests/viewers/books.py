"""A store as a database that never saw curate: DuckDB over its Parquet files, its inputs and its JSON manifests.

Nothing here goes through curate's readers, statistics or receipts, so what it counts is a second opinion.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import zarr

COLUMNS = ("language VARCHAR", "url VARCHAR", "topic VARCHAR", "quality_level BIGINT", "quality_score BIGINT")
HOST = r"lower(regexp_extract(url, '^[^:/]+://(?:[^/?#\\]*@)?([^/?#:\\]*)', 1))"


def share(part: int | None, whole: int | None) -> str:
    """Return a percentage as a reader wants it, by arithmetic of its own."""
    if not whole:
        return "–"
    part = part or 0
    tenths = round(Fraction(part * 1000, whole))  # half to even
    if part in (0, whole):
        return "100%" if part else "0%"
    return "<0.1%" if tenths == 0 else ">99.9%" if tenths == 1000 else f"{decimal(Fraction(part * 100, whole), 1)}%"


def decimal(value: Fraction, places: int) -> str:
    """Return `value` with `places` decimals, half to even."""
    units = round(value * 10**places)
    whole, rest = divmod(abs(units), 10**places)
    return f"{'-' if units < 0 else ''}{whole}.{rest:0{places}d}"


class Books:
    """A committed result: tables stages, steps, docs, ledger, samples, and `cells` of token caches."""

    def __init__(self, root: Path, folder: str, inputs: Path, logs: Path) -> None:
        self.root, self.folder, self.inputs, self.logs = root, folder, inputs, logs
        self.database = duckdb.connect(":memory:", config={"threads": 1})
        self.recipe = self._json(f"{folder}/manifest.json")
        self.plan_path = root / folder / "plan.json"
        self.stages: dict[str, dict[str, Any]] = {}
        joined: dict[str, str] = {}
        made: list[dict[str, Any]] = []
        for entry in self.recipe["stages"]:
            manifest = self._json(f"{self._folder(entry['key'])}/manifest.json")
            if manifest["operation"].get("operation") == "compact":
                joined[manifest["key"]] = joined.get(manifest["inputs"][0]["key"], manifest["inputs"][0]["key"])
            elif entry["kind"] == "dataset":
                self.stages[manifest["key"]] = manifest
            else:
                made.append(manifest)
        for manifest in [*self.stages.values(), *made]:
            manifest["from"] = [joined.get(entry["key"], entry["key"]) for entry in manifest["inputs"]]
        self.caches = {manifest["key"]: manifest for manifest in made if manifest["kind"] == "caches"}
        self._outputs()
        self._tables()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.database.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> Any:
        """Return the one value of a query."""
        ((value,),) = self.rows(query, *values)
        return value

    def title(self, stage: str) -> str:
        """Return how a page calls the stage."""
        return f"{self.stages[stage]['name']} ({stage[:16]})"

    def stage(self, title: str) -> str:
        """Return the key of the stage of this name or title."""
        found = [key for key, made in self.stages.items() if title in (made["name"], self.title(key))]
        assert len(found) == 1, (title, found)
        return found[0]

    def cells(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return (output, cell) → documents, tokens and the dataset, counted in the arrays of each cache."""
        found = {}
        for output, key in self.cache_outputs.items():
            for cell, entry in self.caches[key]["cells"].items():
                group = zarr.open_group(self.root / entry["folder"], mode="r")
                offsets = group["offsets"][:]
                told: dict[str, Any] = {"documents": len(offsets) - 1, "tokens": int(offsets[-1])}
                told["lengths"] = (offsets[1:].astype(int) - offsets[:-1].astype(int)).tolist()
                told["ids"] = [bytes(identity) for identity in group["ids"][:]]
                assert told["tokens"] == group["tokens"].shape[0]
                found[output, cell] = {**told, "dataset": self.caches[key]["from"][0], "content": entry["content"]}
        return found

    def _json(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / path).read_bytes())
        return found

    def _folder(self, key: str) -> str:
        (folder,) = [path.parent.name for path in self.root.glob(f"*-{key[:16]}/manifest.json")]
        return folder

    def _outputs(self) -> None:
        entries = self.recipe["outputs"]
        self.cache_outputs = {name: e["key"] for name, e in entries.items() if e["kind"] == "caches"}
        named = {name: e["key"] for name, e in entries.items() if e["kind"] == "dataset"}
        self.outputs = named or {name: self.caches[key]["from"][0] for name, key in self.cache_outputs.items()}

    def _tables(self) -> None:
        make = self.database.execute
        make("CREATE TABLE stages (stage VARCHAR, name VARCHAR, place INT, reads BOOL, shards INT)")
        make("CREATE TABLE steps (stage VARCHAR, place INT, step VARCHAR)")
        make(f"CREATE TABLE docs (stage VARCHAR, id BLOB, text VARCHAR, source VARCHAR, {', '.join(COLUMNS)})")
        made_of = "stage VARCHAR, kind VARCHAR, id BLOB, source VARCHAR, transform VARCHAR, reason VARCHAR"
        numbers = "characters BIGINT, cut BIGINT, inserted BIGINT, origin STRUCT(length BIGINT)"
        make(f"CREATE TABLE samples ({made_of})")
        make(f"CREATE TABLE ledger ({made_of}, {numbers})")
        for place, (key, made) in enumerate(self.stages.items()):
            folder = self.root / self._folder(key)
            shards = [s for (s,) in self.rows("SELECT key FROM read_parquet(?)", str(folder / "shards.parquet"))]
            make("INSERT INTO stages VALUES (?, ?, ?, ?, ?)", [key, made["name"], place, not made["from"], len(shards)])
            steps = [s["name"] for s in made["operation"].get("steps", [])]
            steps = steps if made["operation"]["operation"] == "documents" else [made["operation"]["operation"]]
            for number, step in enumerate(steps):
                make("INSERT INTO steps VALUES (?, ?, ?)", [key, number, step])
            for table, name in (("docs", "part"), ("ledger", "dropped")):
                self._add(table, key, [self.root / f"shards/{shard[:16]}/{name}.parquet" for shard in shards])
            self._add("samples", key, [folder / "samples.parquet"])
        make("ALTER TABLE docs ADD COLUMN characters BIGINT")
        make("ALTER TABLE docs ADD COLUMN host VARCHAR")
        make(f"UPDATE docs SET characters = length(text), host = nullif({HOST}, '')")

    def _add(self, table: str, stage: str, paths: list[Path]) -> None:
        there = [str(path) for path in paths if path.exists()]
        if not there:
            return
        query = "SELECT ? AS stage, * FROM read_parquet(?, union_by_name = true)"
        new = f"SELECT * FROM {table} UNION ALL BY NAME SELECT * FROM ({query})"
        self.database.execute(f"CREATE OR REPLACE TABLE {table} AS {new}", [stage, there])
