"""Sites: the end of a host at which one owner begins, most likely."""

from __future__ import annotations

import pyarrow as pa
import pytest

from transforms.sites import site_of, sites_of


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("www.example.org", "example.org"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("example.com.au", "example.com.au"),
        ("co.uk", "co.uk"),
        ("shop.example.de", "example.de"),
        ("localhost", "localhost"),
        ("10.0.0.1", "10.0.0.1"),
        ("[::1]", "[::1]"),
    ],
)
def test_site_is_the_end_of_a_host(host: str, site: str) -> None:
    assert site_of(host) == site


def test_sites_of_urls_are_null_without_a_host() -> None:
    urls = pa.array(
        ["http://WWW.Example.org:80/a", None, "", "mailto:x", "https://b.example.org/?q"], pa.large_string()
    )
    assert sites_of(urls).to_pylist() == ["example.org", None, None, None, "example.org"]
