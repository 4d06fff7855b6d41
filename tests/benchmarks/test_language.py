"""The arithmetic of `benchmarks.language` and the kinds of `benchmarks.urls`."""

from __future__ import annotations

import json
import re

from benchmarks.language import LABELS, Page, declared, scores
from benchmarks.urls import KINDS, cases


def test_scores_count_labelled_pages_only() -> None:
    pages = [
        *[Page("en", "en", 0.9)] * 6,
        *[Page("en", "de", 0.6)] * 2,
        *[Page("de", "de", 0.4)] * 5,
        Page(None, "en", 1),
    ]
    found = {
        name: (count, round(precision, 3), recall) for name, (count, precision, recall) in scores(pages, 0).items()
    }
    assert found == {"en": (8, 1.0, 0.75), "de": (5, 0.714, 1.0), "mean": (13, 0.857, 0.875)}
    assert scores(pages, 0.5) == {"en": (8, 1.0, 0.75), "de": (5, 0.0, 0.0), "mean": (13, 0.5, 0.375)}


def test_declared_languages_are_what_the_page_states() -> None:
    page = b'<html xmlns="x" lang="de-AT"><meta property="og:locale" content="en_US"><body lang=xyz>'
    assert declared(page) == {"de", "en"}


def test_labels_read_for_the_benchmark_are_digests_by_language() -> None:
    labels = json.loads(LABELS.read_text())
    digests = [digest for some in labels.values() for digest in some]
    assert len(digests) == len(set(digests)) == 341
    assert all(re.fullmatch("[0-9a-f]{12}", digest) for digest in digests)


def test_url_cases_have_all_kinds_and_are_the_same_each_time() -> None:
    made = cases(["bad.example", "worse.example"], ["bad.example/page"], 100)
    assert made == cases(["bad.example", "worse.example"], ["bad.example/page"], 100)
    assert {kind for kind, _ in made} == set(KINDS) and len(made) == 100
