"""A store for the pages: two sources with hostile texts, made once by the engine in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from curate.store import Store
from tests.viewers.browser import Browser, find_chromium
from tests.viewers.graded_store import make_graded_store
from tests.viewers.sheet_store import make_sheet_store
from tests.viewers.stores import Made, make_store
from tests.viewers.token_stores import SHELF, make_token_store, write_run
from viewers import write_report


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: opens a page in Chromium")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_store(tmp_path_factory.mktemp("viewers"))


@pytest.fixture(scope="session")
def page(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    return write_report(Store(made.root), made.folder, path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_token_store(tmp_path_factory.mktemp("tokens"))


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_graded_store(tmp_path_factory.mktemp("graded"))


@pytest.fixture(scope="session")
def logged(trained: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run <1>", str(trained.result.plan), ["web", SHELF])


@pytest.fixture(scope="session")
def token_page(trained: Made, logged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "tokens.html"
    return write_report(Store(trained.root), trained.folder, path, runs=[logged])


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on PATH")
    with Browser(program) as opened:
        yield opened


@pytest.fixture(scope="session")
def graded_page(graded: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "graded.html"
    return write_report(Store(graded.root), graded.folder, path)


@pytest.fixture(scope="session")
def sheep(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_sheet_store(tmp_path_factory.mktemp("sheet"))


@pytest.fixture(scope="session")
def sheep_page(sheep: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "sheep.html"
    return write_report(Store(sheep.root), sheep.folder, path)
