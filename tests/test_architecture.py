"""The house of ARCHITECTURE §2: transforms ← curate ← mixtures ← trainers, and viewers; arrows only downwards."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "transforms": set(),
    "curate": {"transforms"},
    "mixtures": {"transforms", "curate"},
    "trainers": {"transforms", "curate", "mixtures"},
    "viewers": {"transforms", "curate", "mixtures", "trainers"},
}
SEES_EVERYTHING = {
    "curate/commands/ablate.py",
    "curate/commands/audit.py",
    "curate/commands/compare.py",
    "curate/commands/declare.py",
    "curate/commands/ladder.py",
    "curate/commands/publish.py",
    "curate/commands/formats.py",
    "curate/commands/index.py",
    "curate/commands/models.py",
    "curate/commands/plan_diff.py",
    "curate/commands/propose.py",
    "curate/commands/report.py",
    "curate/commands/store.py",
    "curate/commands/runs.py",
    "curate/commands/tokens.py",
    "curate/commands/training.py",
}
HEAVY = {
    "boto3",
    "botocore",
    "google",
    "ray",
    "fasttext",
    "trafilatura",
    "tensorstore",
    "jax",
    "datatrove",
    "datasets",
    "datasketch",
}


def modules():
    return sorted(path for package in MAY_IMPORT for path in (ROOT / package).rglob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import from the top, not relative"
            yield node.module


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_of_a_module_point_downwards_only(path):
    name = path.relative_to(ROOT).as_posix()
    package = name.split("/")[0]
    own = {imported.split(".")[0] for imported in imports(path)} & set(MAY_IMPORT)
    if name not in SEES_EVERYTHING:
        assert own - {package} <= MAY_IMPORT[package], f"{name} imports {sorted(own - {package} - MAY_IMPORT[package])}"


def test_examples_tests_and_benchmarks_are_imported_by_no_package():
    for path in modules():
        assert not {name.split(".")[0] for name in imports(path)} & {"examples", "tests", "benchmarks"}, path


def test_transforms_import_no_storage_and_no_network():
    forbidden = {"ray", "fsspec", "s3fs", "tensorstore", "socket", "urllib.request", "requests", "subprocess"}
    for path in (ROOT / "transforms").rglob("*.py"):
        assert not set(imports(path)) & forbidden, path


def test_modules_do_not_import_heavy_libraries_at_the_top():
    for path in modules():
        top = ast.parse(path.read_text("utf-8")).body
        names = {alias.name for node in top if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in top if isinstance(node, ast.ImportFrom)}
        allowed = {"jax"} if path.is_relative_to(ROOT / "trainers") else set()
        found = {name.split(".")[0] for name in names} & (HEAVY - allowed)
        assert not found, f"{path} imports {sorted(found)}: import it where it is used"


class _Running(ast.NodeTransformer):
    """Leaves out what only type checkers read."""

    def visit_If(self, node):
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node.orelse or None
        return self.generic_visit(node)


def arrows(sources):
    """Return module → modules among `sources` (name → text) that it imports, at its top or in a function."""
    found = {}
    for name, text in sources.items():
        names = set()
        for node in ast.walk(_Running().visit(ast.parse(text))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= (inner & sources.keys()) or {node.module}
        found[name] = names & sources.keys() - {name}
    return found


def circle(arrows):
    """Return the modules of a circle of imports and of what leads into one; nothing where there is none."""
    left = dict(arrows)
    while leaves := [name for name, imported in left.items() if not imported & left.keys()]:
        for name in leaves:
            del left[name]
    return left


def test_no_import_leads_in_a_circle_back_to_its_module():
    paths = [*modules(), *sorted((ROOT / "benchmarks").rglob("*.py"))]
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    found = circle(arrows({name: path.read_text("utf-8") for name, path in named.items()}))
    assert not found, f"imports lead in a circle among {sorted(found)}"


def test_circle_is_found_in_functions_and_not_among_types():
    typed = "if TYPE_CHECKING:\n    from a import c\n"
    assert not circle(arrows({"a.b": typed, "a.c": "from a import b\nimport os\n"}))
    assert circle(arrows({"a.b": "def f():\n    from a.c import x\n", "a.c": "from a import b\n"})).keys() == {
        "a.b",
        "a.c",
    }


def test_classes_inherit_at_most_one_deep():
    parents = {}
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                parents[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
    standard = {"Protocol", "Exception", "RuntimeError", "ValueError", "Enum", "StrEnum", "NamedTuple", "ABC"}
    for name, bases in parents.items():
        if name.endswith("Error"):
            continue
        for base in set(bases) - standard:
            grandparents = set(parents.get(base, [])) - standard
            assert not grandparents, f"{name} inherits {base}, which inherits {sorted(grandparents)}"
