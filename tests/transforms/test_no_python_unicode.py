"""Text rules use the pinned tables: what `str` methods and `re` classes mean differs between Python versions."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "transforms"
METHODS = {
    "isalnum", "isalpha", "isascii_", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable",
    "isspace", "istitle", "isupper", "lower", "upper", "title", "casefold", "capitalize", "swapcase",
}  # fmt: skip
BLANK = {"strip", "lstrip", "rstrip", "split", "rsplit", "splitlines"}  # without an argument: Python's white space
CLASSES = ("\\w", "\\W", "\\d", "\\D", "\\s", "\\S", "\\b", "\\B")
OURS = {"encoding_labels.py", "page_licence.py"}
"""Modules that split constants of their own, in ASCII, when they are imported."""
LABELS = {
    "(found[1] or found[2]).decode('ascii').lower()",
    "terms.upper()",
    "port.upper()",
    """(http_charset or '').strip('"\\' \\t').lower()""",
}
"""Calls on what is ASCII for certain: names that a library gives, matches of ASCII patterns."""
CONSTANTS = {"names.split()", "ranges.split()"}


def calls(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_text_rules_ask_python_nothing_about_unicode(path):
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    assert "import unicodedata" not in source
    for call in calls(tree):
        text = ast.unparse(call)
        name = call.func.attr
        assert name not in METHODS or text in LABELS, (
            f"{path.name}:{call.lineno}: {text}: use transforms.unicode_tables"
        )
        blank = name in BLANK and not call.args and text not in CONSTANTS
        assert not blank or path.name in OURS, f"{path.name}:{call.lineno}: {text}: say which characters"
        if name == "compile" and ast.unparse(call.func) == "re.compile":
            pattern = call.args[0]
            if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str):
                flagged = any("ASCII" in ast.unparse(a) for a in call.args[1:]) or "(?a" in pattern.value
                found = [c for c in CLASSES if c in pattern.value]
                assert flagged or not found, f"{path.name}:{call.lineno}: {found} without re.ASCII"
