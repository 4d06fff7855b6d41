from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.transforms.documents import batch_of
from transforms import url_lists
from transforms.outcome import SchemaError
from transforms.url_lists import URLList, WordList
from transforms.url_rules import URLAllowList, URLDenyList, URLDomain, URLRule, URLWords, datatrove_lists

URL = pa.field("url", pa.large_string())


@pytest.fixture(autouse=True)
def node_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(url_lists, "own_folder", lambda: tmp_path)
    yield
    url_lists._mapped.cache_clear()


def listed(tmp_path: Path, name: str, *lines: str) -> URLList:
    (tmp_path / f"{name}.txt").write_text("\n".join(lines), "utf-8")
    return URLList(tmp_path / f"{name}.txt")


def words(tmp_path: Path, name: str, *lines: str) -> WordList:
    (tmp_path / f"{name}.words").write_text("\n".join(lines), "utf-8")
    return WordList(tmp_path / f"{name}.words")


def batch(*urls: str | None) -> pa.RecordBatch:
    return batch_of([f"text {row}" for row in range(len(urls))], {URL: list(urls)})


def dropped(rule: URLRule, *urls: str | None) -> list[tuple[str | None, str, str]]:
    rows = batch(*urls)
    outcome = rule.apply(rows)
    names = dict(zip(rows.column("id").to_pylist(), urls, strict=True))
    kept = [names.pop(identity) for identity in outcome.kept.column("id").to_pylist()]
    found = [(names[row["id"]], row["reason"], row["evidence"]) for row in outcome.dropped.to_pylist()]
    assert len(kept) + len(found) == len(urls)
    return found


def test_deny_list_takes_sub_domains_and_never_look_alikes(tmp_path: Path) -> None:
    rule = URLDenyList(listed(tmp_path, "bad", "bad.example", "shop.example/private", "news.co.uk"))
    stays = [
        "http://notbad.example/",
        "http://bad.example.org/",
        "http://bad-example/",
        "http://shop.example/privateer",
        "http://shop.example/?x=/private",
        "http://a.shop.example/private",
        "http://other.co.uk/news.co.uk",
        None,
        "",
    ]
    goes = {
        "http://bad.example/": "bad.example",
        "https://WWW.Bad.Example:443/x?y": "bad.example",
        "http://a.b.bad.example./": "bad.example",
        "http://user@bad.example:8080/": "bad.example",
        "http://www.shop.example/private/x": "shop.example/private",
        "http://shop.example/%70rivate?page=2": "shop.example/private",
        "http://cdn.news.co.uk/": "news.co.uk",
    }
    found = dropped(rule, *stays, *goes)
    assert [(url, reason) for url, reason, _ in found] == [(url, "url list: bad") for url in goes]
    assert [f'"entry":"{entry}"' in evidence for (_, _, evidence), entry in zip(found, goes.values(), strict=True)]
    assert found[0][2] == '{"entry":"bad.example","line":1,"list":"bad"}'
    assert found[-1][2] == '{"entry":"news.co.uk","line":3,"list":"bad"}'


def test_deny_lists_first_list_and_broadest_entry_say_why(tmp_path: Path) -> None:
    one = listed(tmp_path, "one", "a.example/x", "www.a.example")
    other = listed(tmp_path, "other", "a.example")
    ((_, reason, evidence),) = dropped(URLDenyList(one, other), "http://www.a.example/x")
    assert (reason, evidence) == ("url list: one", '{"entry":"www.a.example","line":2,"list":"one"}')
    ((_, reason, _),) = dropped(URLDenyList(other, one), "http://www.a.example/x")
    assert reason == "url list: other"


def test_allow_list_keeps_what_it_names_only(tmp_path: Path) -> None:
    rule = URLAllowList(listed(tmp_path, "good", "*.edu", "good.example"))
    found = dropped(rule, "http://x.edu/", "http://a.good.example/", "http://other.example/", None)
    assert found == [
        ("http://other.example/", "not in url list", '{"lists":["good"]}'),
        (None, "not in url list", '{"lists":["good"]}'),
    ]


def test_url_words_banned_soft_and_parts(tmp_path: Path) -> None:
    rule = URLWords(
        words(tmp_path, "banned", "casino"), words(tmp_path, "soft", "free", "win"), words(tmp_path, "parts", "x x x")
    )
    found = dropped(
        rule,
        "http://a.example/CASINO-x.html",
        "http://a.example/casinos",
        "http://a.example/free/free",
        "http://free.example/win?y",
        "http://a.example/ax-x/xb",
        None,
    )
    assert found == [
        ("http://a.example/CASINO-x.html", "banned word", '{"words":["casino"]}'),
        ("http://free.example/win?y", "soft words", '{"words":["free","win"]}'),
        ("http://a.example/ax-x/xb", "part of a word", '{"words":["xxx"]}'),
    ]


def test_rule_behind_tag_keeps_all_and_writes_what_it_found(tmp_path: Path) -> None:
    tag = URLDenyList(listed(tmp_path, "bad", "bad.example")).tag()
    rows = batch("http://bad.example/", "http://good.example/", None)
    kept = tag.apply(rows).kept
    assert kept.schema == tag.output_schema(rows.schema) and kept.num_rows == 3
    names = ["url_deny_list_reason", "url_deny_list_list", "url_deny_list_entry", "url_deny_list_line"]
    assert [kept.column(name).to_pylist() for name in names] == [
        ["url list: bad", None, None],
        ["bad", None, None],
        ["bad.example", None, None],
        ["1", None, None],
    ]
    with pytest.raises(SchemaError, match="another prefix"):
        tag.output_schema(kept.schema)
    tagged = URLWords(words(tmp_path, "banned", "bad")).tag("words").apply(rows).kept
    assert tagged.column("words_words").to_pylist() == ['["bad"]', None, None]


def test_url_domain_adds_host_and_registered_domain() -> None:
    rows = batch("http://www.shop.example.co.uk/x", "http://a.b.github.io/", "http://1.2.3.4/", None)
    kept = URLDomain().apply(rows).kept
    assert kept.schema == URLDomain().output_schema(rows.schema)
    assert kept.column("url_host").to_pylist() == ["www.shop.example.co.uk", "a.b.github.io", "1.2.3.4", None]
    assert kept.column("url_domain").to_pylist() == ["example.co.uk", "b.github.io", None, None]
    assert URLDomain(private=False).apply(rows).kept.column("url_domain")[1].as_py() == "github.io"


def test_rules_without_url_column_or_lists_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="url"):
        URLDomain().output_schema(batch_of(["x"]).schema)
    with pytest.raises(SchemaError, match="url"):
        URLDenyList(listed(tmp_path, "bad", "bad.example")).output_schema(batch_of(["x"]).schema)
    with pytest.raises(ValueError, match="give a list"):
        URLDenyList()
    with pytest.raises(TypeError, match=r"bad\.txt"):
        URLDenyList(tmp_path / "bad.txt")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="different names"):
        URLDenyList(listed(tmp_path, "bad", "bad.example"), listed(tmp_path, "bad", "bad.example"))
    with pytest.raises(ValueError, match="needs a list"):
        URLWords()
    with pytest.raises(ValueError, match="least_soft"):
        URLWords(words(tmp_path, "w", "x"), least_soft=0)


def test_datatrove_lists_are_found_where_it_is_installed() -> None:
    domains, urls = datatrove_lists()
    assert (domains.name, domains.member, urls.name) == ("datatrove domains", "domains", "datatrove urls")
    rule = URLWords.of_datatrove()
    assert rule.least_soft == 2 and all(rule_list is not None for rule_list in (rule.banned, rule.soft, rule.parts))
    rule.ready()
