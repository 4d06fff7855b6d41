"""The five benchmarks that decontamination is measured with."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from transforms.contamination import Benchmark

DATA: Final = Path(__file__).parents[2] / "shared" / "data"


def benchmarks() -> tuple[Benchmark, ...]:
    """Return the five benchmarks."""
    folder = DATA / "benchmarks"
    code = {"question": "prompt", "answer": "canonical_solution"}
    return (
        Benchmark.jsonl("gsm8k", folder / "gsm8k_test.jsonl.zst", question="question", answer="answer"),
        Benchmark.jsonl("humaneval", folder / "HumanEval.jsonl.gz", **code),
        Benchmark.jsonl("mbpp", folder / "mbpp_release_v1.jsonl.zst", **code),
        Benchmark.jsonl(
            "mmlu", folder / "mmlu_stem_test.jsonl.zst", question="question", answer="answer", choices="choices"
        ),
        Benchmark.csv("truthfulqa", folder / "TruthfulQA.csv.zst", question="Question", answer="Best Answer"),
    )
