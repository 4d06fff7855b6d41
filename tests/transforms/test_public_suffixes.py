from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from blake3 import blake3

from transforms.public_suffixes import Rules, SuffixError, is_address, read_suffixes, suffix_file, suffix_rules

LIST = """// a list made for tests
// ===BEGIN ICANN DOMAINS===
com
jp
*.kobe.jp
!city.kobe.jp
co.uk
uk
公司.cn
// ===BEGIN PRIVATE DOMAINS===
pages.example.com
"""


def rules(tmp_path: Path, private: bool = False) -> Rules:
    path = tmp_path / "suffixes.dat"
    path.write_text(LIST, "utf-8")
    return suffix_rules(path, blake3(LIST.encode()).hexdigest(), private)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("com", None),
        ("example.co.uk", "example.co.uk"),
        ("co.uk", None),
        ("a.b.c.kobe.jp", "b.c.kobe.jp"),
        ("c.kobe.jp", None),
        ("x.city.kobe.jp", "city.kobe.jp"),
        ("kobe.jp", "kobe.jp"),
        ("shop.xn--55qx5d.cn", "shop.xn--55qx5d.cn"),
        ("unlisted.zz", "unlisted.zz"),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("localhost", None),
    ],
)
def test_registered_domain_follows_the_longest_rule(tmp_path: Path, host: str, domain: str | None) -> None:
    assert rules(tmp_path).registered(host) == domain


def test_private_suffixes_count_only_when_asked_for(tmp_path: Path) -> None:
    assert rules(tmp_path).registered("me.pages.example.com") == "example.com"
    assert rules(tmp_path, private=True).registered("me.pages.example.com") == "me.pages.example.com"


def test_are_suffixes_equals_the_rule_for_one_host(tmp_path: Path) -> None:
    hosts = ["com", "example.com", "co.uk", "a.kobe.jp", "city.kobe.jp", "kobe.jp", "zz", "a.zz", "xn--55qx5d.cn"]
    found = rules(tmp_path).are_suffixes(pa.array(hosts, pa.large_string())).to_pylist()
    assert found == [rules(tmp_path).suffix(host) == host for host in hosts]
    assert found == [True, False, True, True, False, False, True, False, True]


def test_shipped_list_knows_registries_and_companies() -> None:
    digest = blake3(read_suffixes(suffix_file())).hexdigest()
    assert suffix_rules(suffix_file(), digest, False).registered("a.blogspot.com") == "blogspot.com"
    assert suffix_rules(suffix_file(), digest, True).registered("x.a.github.io") == "a.github.io"
    assert suffix_rules(suffix_file(), digest, True).registered("www.bbc.co.uk") == "bbc.co.uk"


def test_suffix_list_absent_or_changed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SuffixError, match=r"none\.dat"):
        read_suffixes(tmp_path / "none.dat")
    (tmp_path / "list.dat").write_text("com\n")
    with pytest.raises(SuffixError, match="changed"):
        suffix_rules(tmp_path / "list.dat", "0" * 64, False)


def test_address_is_told_by_its_last_label() -> None:
    assert [is_address(host) for host in ("1.2.3.4", "[::1]", "a.1", "a1", "1.a", "")] == [True] * 3 + [False] * 3
