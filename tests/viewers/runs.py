"""Logs of training runs written by hand: one that was killed, asked to stop and resumed, and the one it came from."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

BEGUN = 1_760_000_000.0
CONFIG = {"steps": 400, "batch": 4, "length": 16, "model.width": 64}
BAD = "<script>alert(1)</script>\u202e"


def start(step: int, at: float, devices: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": "start",
        "step": step,
        "plan": "a" * 64,
        "config": CONFIG,
        "environment": {"devices": str(devices), "hosts": "1", "device": "cpu", "jax": BAD},
        "changed": [],
        "parent": None,
        "flop_per_token": 2000,
        "timing": {"time": BEGUN + at, "host": BAD, "peak_flops": 1e6, "peak": "measured"},
        **more,
    }


def trained(step: int, at: float, loss: float | None = None) -> dict[str, Any]:
    usual = 3 + math.exp(-step / 60) + 0.03 * math.sin(step * 1.7)
    return {
        "kind": "train",
        "step": step,
        "loss": usual if loss is None else loss,
        "tokens": 64 * (step + 1),
        "predicted": 60,
        "learning_rate": 0.003 * min(1, (step + 1) / 20),
        "gradient_norm": 1 + 1 / (1 + step),
        "experts": {
            "max_violation": [0.5 * math.exp(-step / 90), 0.7 * math.exp(-step / 90)],
            "load": [[10, 12, 11, 31], [16, 16, 16, 16]],
            "overflowed": [[0, 0, 0, 2], [0, 0, 0, 0]],
            "entropy": [1.2, 1.3],
            "bias_norm": 0.01 * step,
        },
        "timing": {"time": BEGUN + at, "seconds": 0.4, "tokens_per_second": 160.0},
    }


def validated(step: int, source: str) -> dict[str, Any]:
    loss = 3.2 + math.exp(-step / 60)
    return {
        "kind": "validation",
        "step": step,
        "source": source,
        "loss": loss,
        "predicted": 500,
        "bits_per_byte": loss / 3,
        "timing": {"seconds": 0.1},
    }


def write(folder: Path, lines: list[dict[str, Any]], notes: list[str] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    if notes:
        (folder / "notes.jsonl").write_text("".join(note + "\n" for note in notes), "utf-8")
    return folder


def line_of_runs(root: Path) -> Path:
    """Write a parent of 100 steps, and the run that went on at step 80: killed once, stopped once, with a spike."""
    parent = [start(0, 0, 4), validated(0, "books"), *(trained(step, step * 0.5) for step in range(100))]
    parent.append({"kind": "checkpoint", "step": 80, "state": "s" * 64, "timing": {}})
    write(root / "parent & <b>", parent)
    link = {
        "run": "parent & <b>",
        "folder": "../parent & <b>",
        "step": 80,
        "state": "s" * 64,
        "changed": [f"rate: {BAD}"],
    }
    lines = [
        start(80, 60, 4, parent=link),
        *(trained(step, step * 0.5 + 30) for step in range(80, 160)),
        start(150, 150, 2),
        *(trained(step, step * 0.5 + 80, 9.0 if step == 170 else None) for step in range(150, 200)),
        validated(100, "books"),
        validated(200, "books"),
        validated(200, BAD),
        {"kind": "stop", "step": 200, "timing": {"time": BEGUN + 190, "reason": "SIGTERM"}},
        start(200, 300, 8, changed=["devices: stored 2, given 8"]),
        *(trained(step, step * 0.5 + 210) for step in range(200, 260)),
    ]
    notes = [
        json.dumps({"time": BEGUN, "step": 175, "text": f"lowered the rate {BAD}", "author": "ann", "before": ""}),
        "no json",
    ]
    return write(root / "child", lines, notes)
