from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.url_places import MOST_HOST, MOST_PATHS, hosts_of, place_of, places_of, span_text, spans_of

URLS = (
    "http://Example.ORG:80/a/../b/%7Ec?utm_source=x&b=2&a=1#top",
    "https://user@example.org:8080/",
    "example.org/page",
    "//example.org/page",
    "http://B\u00fccher.example/\u00e9",
    "http://[2001:db8::1]:80/x",
    "http://10.0.0.1/x",
    "mailto:x",
    "http://",
    "",
    "http://a..b/c//d/",
    "http://example.org",
    "http://example.org/.hidden/x",
    "http://example.org/a;jsessionid=1/b",
    "https://example.org/a-b_c~d/(e),f:g=@h/",
)


def spans(url: str) -> list[str]:
    data, _, starts, ends = spans_of(places_of(pa.array([url], pa.large_string())))
    return [span_text(data, int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (URLS[0], "example.org/b/~c?a=1&b=2"),
        (URLS[1], "example.org/"),
        (URLS[2], "example.org/page"),
        (URLS[3], "example.org/page"),
        (URLS[4], "xn--bcher-kva.example/%C3%A9"),
        (URLS[5], "[2001:db8::1]/x"),
        ("http://", ""),
        ("", ""),
        ("http://" + "a." * 200 + "example.org/", ("a." * 200 + "example.org")[-MOST_HOST:] + "/"),
    ],
)
def test_place_is_host_path_and_query_in_normal_form(url: str, place: str) -> None:
    assert (place_of(url) if url else "") == place
    assert places_of(pa.array([url], pa.large_string())).to_pylist() == [place]


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(URLS) | st.from_regex(r"https?://[a-z0-9._-]{1,9}/[a-zA-Z0-9._~%/;?&=-]{0,20}"), max_size=6
    )
)
def test_places_of_a_batch_equal_those_of_single_urls(urls: list[str]) -> None:
    assert places_of(pa.array(urls, pa.large_string())).to_pylist() == [place_of(url) if url else "" for url in urls]


def test_spans_are_endings_of_the_host_and_beginnings_of_the_path() -> None:
    assert spans("http://www.example.org/a/b.html?p=1") == [
        "org",
        "example.org",
        "www.example.org",
        "www.example.org/a",
        "www.example.org/a/b.html",
        "www.example.org/a/b.html?p=1",
        "example.org/a",
        "example.org/a/b.html",
        "example.org/a/b.html?p=1",
    ]
    assert spans("http://example.org/a//b/") == ["org", "example.org", "example.org/a", "example.org/a//b"]
    assert spans("http://example.org/?p=1") == ["org", "example.org", "example.org/?p=1"]


def test_spans_of_addresses_are_whole() -> None:
    assert spans("http://10.0.0.1/x") == ["10.0.0.1", "10.0.0.1/x"]
    assert spans("http://[::1]/") == ["[::1]"]


def test_spans_of_hostile_urls_are_bounded() -> None:
    assert len(spans("http://" + "a." * 50_000 + "org/" + "x/" * 50_000)) <= MOST_HOST + MOST_PATHS
    assert spans("") == []


def test_spans_of_slices_are_those_of_the_rows() -> None:
    places = places_of(pa.array(["http://a.org/x", "http://b.org/y", None, "http://c.org/z"], pa.large_string()))
    data, rows, starts, ends = spans_of(places.slice(1, 3))
    assert [(int(row), span_text(data, int(a), int(b))) for row, a, b in zip(rows, starts, ends, strict=True)] == [
        *((0, span) for span in ("org", "b.org", "b.org/y")),
        *((2, span) for span in ("org", "c.org", "c.org/z")),
    ]
    assert hosts_of(places).to_pylist() == ["a.org", "b.org", "", "c.org"]
