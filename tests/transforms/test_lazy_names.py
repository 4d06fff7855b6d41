from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import curate
import transforms
from transforms.lazy_names import lazy_names

PACKAGES = [transforms, curate]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_a_package_is_found(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize("package", PACKAGES)
def test_public_name_is_never_that_of_a_module_beside_it(package):
    folder = Path(package.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(package.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_name_that_a_package_lacks_is_an_attribute_error_of_that_name(package):
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing_here'"):
        _ = package.nothing_here


def test_import_of_curate_loads_neither_a_compiler_nor_arrow():
    seen = subprocess.run(
        [sys.executable, "-c", "import json, sys, curate, transforms; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"numba", "pyarrow", "numpy", "ray"} & set(json.loads(seen.stdout))


def test_lazy_names_are_those_under_type_checking_only(tmp_path):
    file = tmp_path / "made.py"
    file.write_text("import os\nif TYPE_CHECKING:\n    from json import dumps, loads\nfrom pathlib import Path\n")
    sys.modules["made"] = type(sys)("made")
    try:
        get, names = lazy_names("made", str(file))
        assert get("dumps") is json.dumps
        assert {"dumps", "loads"} <= set(names())
        with pytest.raises(AttributeError):
            get("Path")
    finally:
        del sys.modules["made"]
