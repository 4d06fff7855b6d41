from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from transforms import kernels


def test_kernel_cache_of_a_user_with_a_home_lies_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert kernels._kernels_folder.__wrapped__() == tmp_path / "home" / ".cache" / "curate" / "kernels"


def test_kernel_cache_of_a_user_without_a_home_is_private_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder can be made below a file")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "file")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = kernels._kernels_folder.__wrapped__().parent
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0


def test_kernel_cache_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "file")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = kernels._kernels_folder.__wrapped__().parent
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="others can write it"):
        kernels._kernels_folder.__wrapped__()


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of three modules: caller imports callee, other imports neither."""
    (tmp_path / "transforms").mkdir()
    for name, text in {"caller": "from transforms.callee import f\n", "callee": "", "other": "x = 1\n"}.items():
        (tmp_path / "transforms" / f"{name}.py").write_text(text)
    monkeypatch.setattr(kernels, "ROOT", tmp_path)
    return tmp_path / "transforms"


def folders(sources: Path) -> list[Path]:
    kernels._imported.cache_clear()
    kernels._source.cache_clear()
    return [kernels.cache_folder.__wrapped__(f"transforms.{name}") for name in ("caller", "callee", "other")]


def test_kernel_cache_of_an_edited_callee_is_new_for_it_and_its_callers_only(sources: Path) -> None:
    caller, callee, other = folders(sources)
    (sources / "callee.py").write_text("y = 2\n")
    edited = folders(sources)
    assert edited[0] != caller and edited[1] != callee
    assert edited[2] == other
    kernels._imported.cache_clear()
    kernels._source.cache_clear()


def test_kernel_cache_counts_every_module_that_a_kernel_calls() -> None:
    sources = kernels._sources("transforms.shingles")
    assert {"transforms.segmentation", "transforms.unicode_tables", "transforms.kernels"} <= sources
