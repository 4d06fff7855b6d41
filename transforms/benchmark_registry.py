"""The common benchmarks: which of their fields hold question, answer, choices and passage; licences, splits, origin.

`known_benchmark("gsm8k", "test.jsonl", split="test")` is a `Benchmark` whose fields are those that this module knows.
Files come from the user, as they are published: none is here, and nothing is fetched. A set that is published in
several layouts has several; the first whose fields all stand in the file is taken, so that the same file always has the
same fields.

`origin` is where the set is published, by the name of its repository or data set on the usual hosts; licences are what
is said there (SPDX where it is one), to be read before anything is redistributed: "not stated" means just that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from transforms.benchmark_items import Benchmark, BenchmarkError, value_at

FIRST_ROWS: Final = 100
"""Rows in which the fields of a layout are looked for."""

Layout = Mapping[str, Any]
"""Fields of a `Benchmark` by part: question, answer, choices, passage, counts_from."""


@dataclass(frozen=True, slots=True)
class KnownSet:
    """A common benchmark."""

    name: str
    origin: str
    licence: str
    splits: tuple[str, ...]
    layouts: tuple[Layout, ...]


def known_benchmark(name: str, path: str | Path, *, split: str = "") -> Benchmark:
    """Return the benchmark `name` of the registry, in the file at `path`.

    Args:
        name: a name of `KNOWN`, as "gsm8k".
        path: the file as it is published: JSON lines, CSV or Parquet, .gz and .zst behind.
        split: which part of the set it is, one of its splits; "" where nobody needs to know.

    Raises:
        BenchmarkError: another name or split, no such file, or none of the layouts is that of the file.
    """
    if name not in KNOWN:
        raise BenchmarkError(
            f"no benchmark {name!r} is known; there are {', '.join(sorted(KNOWN))}. For another set name its fields: "
            "Benchmark.jsonl(name, path, question=…, answer=…)"
        )
    which = KNOWN[name]
    if split and split not in which.splits:
        raise BenchmarkError(f"{name} has no split {split!r}; there are {', '.join(which.splits)}")
    made = [Benchmark.file(name, path, split=split, **layout) for layout in which.layouts]
    rows = made[0].rows()[:FIRST_ROWS]
    for benchmark, layout in zip(made, which.layouts, strict=True):
        if all(any(value_at(row, field) is not None for row in rows) for field in _fields(layout)):
            return benchmark
    there = ", ".join(sorted(rows[0])) if rows else "no rows"
    wanted = " or ".join(", ".join(_fields(layout)) for layout in which.layouts)
    raise BenchmarkError(f"{path} has the fields {there}; {name} has {wanted}. Name them with Benchmark.file(…)")


def _fields(layout: Layout) -> list[str]:
    names = [value for part, value in layout.items() if part != "counts_from"]
    return [name for value in names for name in ((value,) if isinstance(value, str) else value)]


def _set(name: str, origin: str, licence: str, splits: str, *layouts: Layout) -> KnownSet:
    parts = tuple(part for part in splits.split(" ") if part)
    return KnownSet(name, origin, licence, parts, tuple(MappingProxyType(one) for one in layouts))


def _fields_of(question: str = "", answer: str = "", **others: Any) -> Layout:
    parts = {"question": question, "answer": answer, **others}
    return {part: value for part, value in parts.items() if value}


_f = _fields_of
_QA: Final = _f("question", "answer")
_LETTERED: Final = _f("question", "answerKey", choices="choices.text", counts_from=1)
_CODE: Final = _f("prompt", "canonical_solution")

_SETS: Final = (
    _set("agieval", "ruixiangcui/AGIEval", "MIT", "test dev", _f("question", "label", choices="options")),
    _set("aime", "Maxwell-Jia/AIME_2024", "MIT", "train test", _f("Problem", "Solution"), _f("problem", "solution")),
    _set("apps", "codeparrot/apps", "MIT", "train test", _f("question", "solutions"), _f("question")),
    _set("arc", "allenai/ai2_arc", "CC-BY-SA-4.0", "train validation test", _LETTERED),
    _set("bbh", "lukaemon/bbh", "MIT", "test", _f("input", "target")),
    _set("boolq", "google/boolq", "CC-BY-SA-3.0", "train validation", _f("question", passage="passage")),
    _set("commonsenseqa", "tau/commonsense_qa", "MIT", "train validation test", _LETTERED),
    _set("copa", "super_glue/copa", "BSD-2-Clause", "train validation test",
         _f("premise", "label", choices=("choice1", "choice2"))),
    _set("drop", "ucinlp/drop", "CC-BY-SA-4.0", "train validation",
         _f("question", "answers_spans.spans", passage="passage")),
    _set("gpqa", "Idavidrein/gpqa", "CC-BY-4.0", "main diamond extended",
         _f("Question", "Correct Answer",
            choices=("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"))),
    _set("gsm8k", "openai/gsm8k", "MIT", "train test", _QA),
    _set("hellaswag", "Rowan/hellaswag", "MIT", "train validation test", _f("ctx", "label", choices="endings")),
    _set("humaneval", "openai/openai_humaneval", "MIT", "test", _CODE),
    _set("humanevalplus", "evalplus/humanevalplus", "Apache-2.0", "test", _CODE),
    _set("ifeval", "google/IFEval", "Apache-2.0", "train", _f("prompt")),
    _set("lambada", "EleutherAI/lambada_openai", "MIT", "test", _f(passage="text")),
    _set("logiqa", "lucasmccabe/logiqa", "not stated", "train validation test",
         _f("query", "correct_option", choices="options", passage="context")),
    _set("math", "hendrycks/competition_math", "MIT", "train test", _f("problem", "solution")),
    _set("math500", "HuggingFaceH4/MATH-500", "MIT", "test", _f("problem", "solution")),
    _set("mbpp", "google-research-datasets/mbpp", "CC-BY-4.0", "train validation test prompt",
         _f("text", "code"), _f("prompt", "code"), _CODE),
    _set("mbppplus", "evalplus/mbppplus", "Apache-2.0", "test", _f("prompt", "code")),
    _set("medqa", "GBaker/MedQA-USMLE-4-options", "not stated", "train test",
         _f("question", "answer", choices="options")),
    _set("mgsm", "juletxara/mgsm", "CC-BY-SA-4.0", "train test", _f("question", "answer"), _f("question")),
    _set("mmlu", "cais/mmlu", "MIT", "test validation dev auxiliary_train",
         _f("question", "answer", choices="choices")),
    _set("mmlu_pro", "TIGER-Lab/MMLU-Pro", "MIT", "test validation", _f("question", "answer", choices="options")),
    _set("multirc", "super_glue/multirc", "not stated", "train validation test",
         _f("question", "answer", passage="paragraph")),
    _set("nq_open", "google-research-datasets/nq_open", "CC-BY-SA-3.0", "train validation", _QA),
    _set("openbookqa", "allenai/openbookqa", "not stated", "train validation test",
         _f("question_stem", "answerKey", choices="choices.text")),
    _set("piqa", "not stated", "AFL-3.0", "train validation test", _f("goal", "label", choices=("sol1", "sol2")),
         _f("goal", choices=("sol1", "sol2"))),
    _set("quac", "allenai/quac", "CC-BY-SA-4.0", "train validation", _f("questions", passage="context")),
    _set("race", "ehovy/race", "not stated", "train validation test",
         _f("question", "answer", choices="options", passage="article")),
    _set("sciq", "allenai/sciq", "CC-BY-NC-3.0", "train validation test",
         _f("question", "correct_answer", choices=("correct_answer", "distractor1", "distractor2", "distractor3"),
            passage="support")),
    _set("social_iqa", "allenai/social_i_qa", "not stated", "train validation",
         _f("question", "label", choices=("answerA", "answerB", "answerC"), passage="context", counts_from=1)),
    _set("squad", "rajpurkar/squad", "CC-BY-SA-4.0", "train validation",
         _f("question", "answers.text", passage="context")),
    _set("svamp", "ChilleD/SVAMP", "MIT", "train test", _f("question_concat", "Answer"), _f("Body", "Answer")),
    _set("triviaqa", "mandarjoshi/trivia_qa", "not stated", "train validation test", _f("question", "answer.value"),
         _f("Question", "Answer.Value")),
    _set("truthfulqa", "truthfulqa/truthful_qa", "Apache-2.0", "validation", _f("question", "best_answer"),
         _f("Question", "Best Answer"), _f("question", choices="mc1_targets.choices")),
    _set("winogrande", "allenai/winogrande", "CC-BY-4.0", "train validation test",
         _f("sentence", "answer", choices=("option1", "option2"), counts_from=1)),
)  # fmt: skip

KNOWN: Final[Mapping[str, KnownSet]] = MappingProxyType({one.name: one for one in _SETS})
"""The sets by name."""
