"""docs/mixtures.md says what the code does."""

import re
from pathlib import Path

from mixtures.loader import Batch
from mixtures.plan_format import FORMAT, KIND
from mixtures.schedule import DRIFT
from tests.mixtures.test_plan import PLAN

TEXT = (Path(__file__).parents[2] / "docs" / "mixtures.md").read_text("utf-8")


def test_page_names_every_field_of_plans_and_batches():
    value = PLAN.truncate(40).to_json()
    names = {*value, *Batch.__dataclass_fields__, *value["sequences"]}
    for part in ("components", "segments", "validation", "earlier"):
        names |= set(value[part][0])
    for name in names:
        assert re.search(rf"\b{name}\b", TEXT), name
    assert f'"{KIND}", {FORMAT.stamp}' in TEXT


def test_page_and_code_agree_on_the_bound():
    fibonacci = [1, 1]
    while len(fibonacci) < 80:
        fibonacci.append(sum(fibonacci[-2:]))
    assert f"< {DRIFT}" in TEXT
    assert sum(1 / number for number in fibonacci) / 2 < DRIFT
