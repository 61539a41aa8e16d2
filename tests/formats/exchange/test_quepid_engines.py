"""The search engine of a Quepid case becomes a declaration that karat reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.errors import InputError
from karat.formats.exchange.quepid_engines import engine_of_case
from karat.formats.own.engines import read_engine
from karat.tables.engines import EngineConfig

Declared = Callable[..., tuple[EngineConfig, list[str]]]
ES = {"search_engine": "es", "endpoint_url": "http://search:9200/tmdb/_search"}


@pytest.fixture
def declared(tmp_path: Path) -> Declared:
    """``declared(try)`` is the engine of a case with this try, and the notes."""

    def declare(**tried: Any) -> tuple[EngineConfig, list[str]]:
        case = {"case_name": "Movies: 2", "queries": [], "try": tried}
        (tmp_path / "case.json").write_text(json.dumps(case), encoding="utf-8")
        text, notes = engine_of_case(tmp_path / "case.json")
        (tmp_path / "karat.toml").write_text(text, encoding="utf-8")
        return read_engine("movies-2", tmp_path), notes

    return declare


def test_elasticsearch(declared: Declared) -> None:
    # As in Quepid's own tests of its editor, with a variable inside and one outside a string.
    params = (
        '{"query": {"multi_match": {"query": "#$query##", "fields": ["title^##titleBoost##"], '
        '"tie_breaker": ##tie##}}}'
    )
    config, notes = declared(
        query_params=params,
        field_spec="id:_id, title:name, thumb:poster, overview, cast",
        curator_vars={"titleBoost": 3, "tie": 0.5, "unused": 1},
        search_endpoint=ES,
    )
    assert (config.kind, config.url, config.index) == (
        "elasticsearch",
        "http://search:9200",
        "tmdb",
    )
    assert (config.id, config.title, config.text) == ("", "name", "overview")
    assert config.template == {
        "query": {
            "multi_match": {
                "query": "{query}",
                "fields": ["title^{params.titleBoost}"],
                "tie_breaker": "{params.tie}",
            }
        }
    }
    assert config.params == {"titleBoost": 3, "tie": 0.5}
    assert notes == []


def test_solr(declared: Declared) -> None:
    config, _ = declared(
        query_params="q=#$query##&defType=edismax\n&qf=title^##boost## body&fq=a:1&fq=b:2&rows=10",
        field_spec="id:id, title:title",
        curator_variables=[{"name": "boost", "value": 2.5}],
        search_endpoint={"search_engine": "solr", "endpoint_url": "http://h/solr/tmdb/select"},
    )
    assert (config.url, config.index, config.id) == ("http://h/solr", "tmdb", "id")
    assert config.template == {
        "query": "{query}",
        "params": {"defType": "edismax", "qf": "title^{params.boost} body", "fq": ["a:1", "b:2"]},
    }
    assert config.params == {"boost": 2.5}


@pytest.mark.parametrize(
    ("method", "params", "template"),
    [
        ("GET", "q=#$query##&boost=##boost##", None),
        ("POST", '{"q": "#$query##", "b": ##boost##}', {"q": "{query}", "b": "{params.boost}"}),
    ],
)
def test_any_search_api(method: str, params: str, template: Any, declared: Declared) -> None:
    config, notes = declared(
        query_params=params,
        field_spec="id:sku, title:name, thumb:image, summary, price",
        curator_variables=[{"name": "boost", "value": 2}],
        search_endpoint={
            "search_engine": "searchapi",
            "endpoint_url": "https://me:hunter2@example.org/api/search",
            "api_method": method,
            "mapper_code": "docsMapper = function (data) { return data.found; }",
        },
    )
    question = "?q={query}&boost={params.boost}" if method == "GET" else ""
    assert (config.kind, config.url) == ("http", f"https://example.org/api/search{question}")
    assert (config.id, config.title, config.text) == ("$.sku", "$.name", "$.summary")
    assert (config.template, config.params) == (template, {"boost": 2})
    assert [note.split(":")[0] for note in notes] == [
        "headers and credentials were left out",
        "the mapper's code was left out",
    ]


def test_no_credential_is_taken_over(declared: Declared, tmp_path: Path) -> None:
    endpoint = {
        "search_engine": "os",
        "endpoint_url": "https://me:hunter2@h:9200/docs/_search",
        "basic_auth_credential": "me:hunter2",
        "custom_headers": '{"Authorization": "hunter2"}',
    }
    config, notes = declared(query_params='{"query": "#$query##"}', search_endpoint=endpoint)
    assert config.url == "https://h:9200"
    assert "hunter2" not in (tmp_path / "karat.toml").read_text(encoding="utf-8")
    assert notes[0].startswith("headers and credentials were left out")


@pytest.mark.parametrize(
    ("tried", "error"),
    [
        ({"search_engine": "static"}, "es, os, solr or searchapi"),
        ({"endpoint_url": "http://h/"}, "an address that names an index"),
        ({"query_params": '{"q": "#$keyword1##"}'}, "the template uses #$keyword1##"),
        ({"query_params": '{"q": "#$query.wild##"}'}, "the template uses #$query.wild##"),
        ({"query_params": """{"q": "#$qOption['sort']##"}"""}, "a column of the queries"),
        ({"query_params": '{"q": ##none##}'}, "the variable ##none## has no value"),
        ({"query_params": "{"}, "JSON with variables of Quepid"),
    ],
)
def test_what_has_no_form_is_refused(tried: dict[str, str], error: str, declared: Declared) -> None:
    params = tried.get("query_params", '{"q": "#$query##"}')
    endpoint = ES | {key: value for key, value in tried.items() if key != "query_params"}
    with pytest.raises(InputError) as caught:
        declared(query_params=params, search_endpoint=endpoint)
    assert error in str(caught.value)
    assert "case.json" in str(caught.value)


def test_a_case_without_a_try_is_not_from_the_export(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text('{"case_name": "Movies", "queries": []}', encoding="utf-8")
    with pytest.raises(InputError, match=r"(?s)no try.*api/export/cases"):
        engine_of_case(tmp_path / "case.json")
