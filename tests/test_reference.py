"""The command-line reference says what the parser says, the API reference builds, and links lead somewhere."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import curate
from docs.api_reference import PACKAGES, build
from docs.cli_reference import PAGE, reference

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(page):
    """Return the anchors of the headings of a page, as GitHub names them."""
    headings = re.findall(r"^#+ +(.*)$", FENCED.sub("", page.read_text("utf-8")), re.M)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "") for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


def test_command_line_reference_is_what_the_parser_says():
    assert PAGE.read_text("utf-8") == reference(), "run python -m docs.cli_reference"


def test_api_reference_builds_without_warnings_and_has_every_public_name(tmp_path):
    pages = {path.relative_to(tmp_path).as_posix() for path in build(tmp_path)}
    assert {f"{package}.html" for package in PACKAGES} <= pages
    text = (tmp_path / "curate.html").read_text("utf-8")
    assert not [name for name in curate.__all__ if f'id="{name}"' not in text]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_to_files_and_headings_that_are_there(page):
    for link in LINK.findall(FENCED.sub("", page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name}: {link}: no such heading"


def test_index_of_the_documentation_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    linked = set(LINK.findall(index))
    for page in PAGES[1:]:
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name in linked or name == "README.md", f"docs/README.md does not link {name}"


def test_faults_of_the_faq_name_tests_that_are_there():
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", (ROOT / "docs" / "faq.md").read_text("utf-8"))
    assert len(named) > 60
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / file).read_text("utf-8"), f"tests/{file} has no {test}"
