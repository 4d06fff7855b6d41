from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from transforms import kernels


def test_kernel_cache_of_a_user_with_a_home_lies_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert kernels.cache_folder.__wrapped__().parent == tmp_path / "home" / ".cache" / "curate" / "kernels"


def test_kernel_cache_of_a_user_without_a_home_is_private_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder can be made below a file")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "file")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = kernels.cache_folder.__wrapped__().parent.parent
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0


def test_kernel_cache_that_others_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "file")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = kernels.cache_folder.__wrapped__().parent.parent
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="others can write it"):
        kernels.cache_folder.__wrapped__()
