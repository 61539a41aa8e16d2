"""A Quepid case over an OpenSearch of eight films, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

FILMS = {
    "11": ("Star Wars", "Luke Skywalker and Han Solo rescue the princess from the Empire"),
    "1891": ("The Empire Strikes Back", "The Empire hunts the rebels"),
    "1893": ("Star Wars: Episode I - The Phantom Menace", "A young slave strong with the Force"),
    "152": ("Star Trek: The Motion Picture", "The Enterprise meets an alien cloud"),
    "13475": ("Star Trek", "The Enterprise and the young James T. Kirk"),
    "1366": ("Rocky", "A boxer gets a shot at the title"),
    "1367": ("Rocky II", "Rocky fights for the title again"),
    "36685": ("The Rocky Horror Picture Show", "A couple and a mad scientist"),
}
RATINGS = {
    "star wars": {"11": 3, "1891": 2, "152": 0},
    "rocky": {"1366": 3, "36685": 1},
    "enterprise": {},
}
TEMPLATE = """{
  "query": {
    "multi_match": {
      "query": "#$query##",
      "fields": ["title^##titleBoost##", "overview"]
    }
  }
}"""


@contextmanager
def opensearch() -> Iterator[str]:
    """The address of osmem-server, OpenSearch's API over a socket; skips where it is absent."""
    module = pytest.importorskip("osmem_server", reason="needs osmem-server")
    with module.OsmemServer.start(japanese=False) as server:
        yield server.url
        server.close()
        server.process.stdout.close()  # which it leaves open


def fill(url: str) -> None:
    """Index the films as ``tmdb``."""
    lines: list[dict[str, Any]] = []
    for doc_id, (title, overview) in FILMS.items():
        lines += [{"index": {"_id": doc_id}}, {"title": title, "overview": overview}]
    httpx2.post(
        f"{url}/tmdb/_bulk?refresh=true",
        content="".join(json.dumps(line) + "\n" for line in lines),
        headers={"content-type": "application/x-ndjson"},
    ).raise_for_status()


def case(url: str) -> dict[str, Any]:
    """As ``/api/export/cases/ID.json`` of Quepid 8 has it."""
    queries = [
        {
            "arranged_at": place,
            "arranged_next": None,
            "query_text": text,
            "options": {},
            "notes": "about boxing" if text == "rocky" else None,
            "information_need": f"films: {text}",
            "ratings": [
                {"doc_id": doc_id, "rating": float(grade), "user_email": "ann@example.org"}
                for doc_id, grade in ratings.items()
            ],
        }
        for place, (text, ratings) in enumerate(RATINGS.items())
    ]
    endpoint = {
        "name": "films",
        "search_engine": "os",
        "endpoint_url": f"{url}/tmdb/_search",
        "api_method": "POST",
        "custom_headers": "{}",
        "basic_auth_credential": None,
        "mapper_code": None,
        "proxy_requests": False,
    }
    return {
        "case_name": "Movies Search",
        "owner_email": "ann@example.org",
        "public": None,
        "archived": False,
        "options": None,
        "scorer": {"name": "nDCG@10", "scale": [0, 1, 2, 3], "code": "…"},
        "queries": queries,
        "try": {
            "try_number": 4,
            "name": "Try 4",
            "query_params": TEMPLATE,
            "escape_query": True,
            "number_of_rows": 10,
            "field_spec": "id:_id, title:title, overview",
            "curator_variables": [{"name": "titleBoost", "value": 10.0, "try_id": 4}],
            "search_endpoint": endpoint,
        },
    }
