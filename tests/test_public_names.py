"""Every public name has a docstring and types, without exception."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("transforms", "curate", "mixtures", "trainers", "viewers")


def modules():
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def definitions(tree):
    """Yield (name, node) of public functions, classes, and public methods of public classes."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name, node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}", member


def untyped(function):
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    named = [argument for argument in arguments if argument.arg not in ("self", "cls")]
    missing = [argument.arg for argument in named if argument.annotation is None]
    return missing + (["return"] if function.returns is None else [])


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_public_names_have_docstrings_and_types(path):
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree), f"{path}: the module says nothing of its purpose"
    for name, node in definitions(tree):
        assert ast.get_docstring(node), f"{path}:{node.lineno}: {name} has no docstring"
        if isinstance(node, ast.FunctionDef):
            assert not untyped(node), f"{path}:{node.lineno}: {name} lacks types of {untyped(node)}"


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_ship_their_types(package):
    assert (ROOT / package / "py.typed").exists()


def test_modules_hold_no_promise_for_later():
    for path in modules():
        text = path.read_text("utf-8")
        assert "TODO" not in text and "FIXME" not in text and "NotImplementedError" not in text, path
