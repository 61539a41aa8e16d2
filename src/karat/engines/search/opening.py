"""Opening a declared engine; adapters are imported on demand."""

from __future__ import annotations

from dataclasses import replace

from karat.engines.search.engine import SearchEngine
from karat.engines.search.template import index_of
from karat.tables.engines import EngineConfig


def open_search_engine(config: EngineConfig) -> SearchEngine:
    """The adapter of an engine that is asked over HTTP or by SQL."""
    config = replace(config, index=index_of(config))
    match config.kind:
        case "http":
            from karat.engines.search.json_api import JsonApi

            return JsonApi(config)
        case "opensearch" | "elasticsearch":
            from karat.engines.search.opensearch import OpenSearch

            return OpenSearch(config)
        case "solr":
            from karat.engines.search.solr import Solr

            return Solr(config)
        case "postgres":
            from karat.engines.search.sql import Postgres

            return Postgres(config)
        case "sqlite":
            from karat.engines.search.sql import Sqlite

            return Sqlite(config)
        case "python":
            raise ValueError("a function is called, not opened")
