from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.viewers.parsed import parse
from tests.viewers.stores import HOSTILE
from viewers.frame import POLICY, document, policy
from viewers.markup import element, join, own_script, stylesheet, text
from viewers.scripts import script
from viewers.visible import HIDDEN, code_points, plain, shortened

pieces = st.sampled_from([*HOSTILE, *"<>&'\"\x00\u202e"])
anything = st.text(st.characters(exclude_categories=())) | st.lists(pieces, max_size=6).map("".join)


@given(anything)
def test_text_any_string_reads_back_with_hidden_characters_named(value: str) -> None:
    root = parse(element("p", value).html)
    assert [node.tag for node in root.all()] == ["p"] + ["span"] * len(HIDDEN.findall(value))
    assert root.text == HIDDEN.sub(lambda run: code_points(run[0]), value)


@given(anything)
def test_attribute_any_string_stays_one_attribute(value: str) -> None:
    root = parse(element("p", "x", title=value).html)
    (node,) = root.all()
    assert node.attributes == {"title": plain(value) or None}
    assert root.text == "x"


@given(anything)
def test_text_any_string_can_be_encoded_and_holds_nothing_invisible(value: str) -> None:
    html = text(value).html
    html.encode()
    for character in html:
        assert unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp") or character in "\n\t"
        assert unicodedata.bidirectional(character) not in (
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        )


def test_hidden_runs_are_counted_in_order() -> None:
    assert code_points("\x00\x00\x00\u202e") == "U+0000 ×3 U+202E"
    assert text("a\x00b").html == 'a<span class="hidden">U+0000</span>b'


def test_hidden_leaves_joiners_and_ordinary_scripts() -> None:
    for ordinary in ("می‌خواهم", "👩‍💻", "क्‍ष", "日本語", "a\tb\nc", "é\u0301", "שלום"):
        assert not HIDDEN.search(ordinary)


@pytest.mark.parametrize(
    ("tag", "attributes"),
    [
        ("script", {}),
        ("iframe", {}),
        ("form", {}),
        ("style", {}),
        ("p", {"onclick": "x"}),
        ("img", {"src": "data:image/png;base64,"}),
        ("p", {"style": "color: red"}),
        ("a", {"href": "http://example.org"}),
        ("a", {"href": "javascript:alert(1)"}),
    ],
)
def test_element_that_could_act_is_refused(tag: str, attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="page"):
        element(tag, **attributes)


@pytest.mark.parametrize("css", ["a{background:url(x)}", "</style>", "@import 'x'"])
def test_stylesheet_that_could_load_or_end_is_refused(css: str) -> None:
    with pytest.raises(ValueError, match="style sheet"):
        stylesheet(css)


@pytest.mark.parametrize("source", ["1</script>", "'<!--'", "</"])
def test_script_that_could_end_or_hide_its_end_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="no markup"):
        own_script(source)


def test_page_admits_its_own_script_by_hash_and_no_other() -> None:
    told = policy("1")
    assert told == f"{POLICY}; script-src 'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"
    assert policy("") == POLICY and "unsafe-eval" not in told and "http" not in told
    assert "<script" not in document("t") and document("t", source=script()).count("<script>") == 1
    assert script() == script() and "eval(" not in script()
    assert script().count("innerHTML") == 1 and "made.innerHTML = slot.textContent" in script()  # the page itself


def test_join_separates_and_escapes() -> None:
    assert join(["a", None, element("b", "<")], " & ").html == "a &amp; <b>&lt;</b>"


def test_shortened_keeps_short_names_whole() -> None:
    assert shortened("a" * 120) == "a" * 120
    assert shortened("a" * 121) == "a" * 120 + "…"
