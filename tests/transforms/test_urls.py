from __future__ import annotations

import pyarrow as pa
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.urls import URLForm, known

FORM = URLForm()

CASES = {
    "HTTP://Example.ORG": "https://example.org/",
    "http://example.org:80/a": "https://example.org/a",
    "https://example.org:443/a": "https://example.org/a",
    "https://example.org:80/a": "https://example.org:80/a",
    "http://example.org:/": "https://example.org/",
    "http://example.org./a/": "https://example.org/a/",
    "https://[2001:DB8::1]:8080/": "https://%5B2001:db8::1%5D:8080/".replace("%5B", "[").replace("%5D", "]"),
    "https://user:Pa%73s@Example.org/": "https://user:Pass@example.org/",
    " https://example.org/a\n": "https://example.org/a",
    "https://example.org/a\tb": "https://example.org/ab",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "https://B%C3%BCcher.example/": "https://xn--bcher-kva.example/",
    "https://xn--bcher-kva.example/": "https://xn--bcher-kva.example/",
    "https://e.org/%7euser/%c3%bc": "https://e.org/~user/%C3%BC",
    "https://e.org/ü b": "https://e.org/%C3%BC%20b",
    "https://e.org/%2f%zz%": "https://e.org/%2F%zz%",
    "https://e.org/a/./b/../c": "https://e.org/a/c",
    "https://e.org/../..": "https://e.org/",
    "https://e.org/a/b/..": "https://e.org/a/",
    "https://e.org/a//b": "https://e.org/a//b",
    "https://e.org/a;jsessionid=0A1B?x=1": "https://e.org/a?x=1",
    "https://e.org/?": "https://e.org/",
    "https://e.org?b=2&a=1&a=0": "https://e.org/?a=1&a=0&b=2",
    "https://e.org/?utm_source=x&id=3&UTM_Medium=y&fbclid=z": "https://e.org/?id=3",
    "https://e.org/?utm%5Fsource=x": "https://e.org/",
    "https://e.org/?utm_source=x&gclid=1": "https://e.org/",
    "https://e.org/?q=a+b&&page": "https://e.org/?page&q=a+b",
    "https://e.org/#part": "https://e.org/",
    "https://e.org/#!/page/2": "https://e.org/#!/page/2",
    "https://e.org\\a": "https://e.org/a",
    "mailto:A@example.org": "mailto:A@example.org",
    "page.html#x": "page.html#x",
    "http:///a": "http:///a",
    "": "",
}


@pytest.mark.parametrize("url", CASES, ids=repr)
def test_normal_form_is_as_stated(url: str) -> None:
    assert FORM.of(url) == CASES[url]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("https://e.org/a", "https://e.org/A"),
        ("https://e.org/a", "https://e.org/a/"),
        ("https://e.org/?a=1", "https://e.org/?a=2"),
        ("https://e.org/?a=1&a=2", "https://e.org/?a=2&a=1"),
        ("https://e.org/a%2Fb", "https://e.org/a/b"),
        ("https://www.e.org/", "https://e.org/"),
        ("https://e.org/", "https://e.org:8080/"),
        ("https://e.org/?reference=1", "https://e.org/"),
    ],
)
def test_urls_of_different_pages_stay_different(a: str, b: str) -> None:
    assert FORM.of(a) != FORM.of(b)


@settings(max_examples=2000)
@given(
    url=st.text(max_size=30)
    | st.text(st.sampled_from("aA.%2fF7e/:?&=#!@[]\\;üé漢 \t\ud800\x00."), max_size=30).map("http://h".__add__)
    | st.text(st.sampled_from("aA.%2fF7e/:?&=#!@ü。"), max_size=12).map("HTTP://".__add__)
)
def test_normal_form_of_any_url_is_its_own(url: str) -> None:
    form = FORM.of(url)
    assert FORM.of(form) == form


def test_list_of_parameters_is_the_users() -> None:
    assert URLForm(("id", "x*")).of("https://e.org/?ID=1&xyz=2&utm_source=3") == "https://e.org/?utm_source=3"
    assert URLForm(()).of("https://e.org/?gclid=1") == "https://e.org/?gclid=1"


def test_digests_are_those_of_normal_forms_and_null_without_url() -> None:
    urls = pa.array(["http://E.org", "https://e.org/#x", None, "", "https://e.org/b"], pa.large_string())
    digests = FORM.digests(urls)
    assert digests.type == pa.binary(16) and digests[0] == digests[1] != digests[4]
    assert digests[0].as_py() == blake3(b"https://e.org/").digest(16)
    assert known(digests).tolist() == [True, True, False, False, True]
