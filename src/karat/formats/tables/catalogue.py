"""The formats by their names for ``--input-format``: one module, one entry."""

from __future__ import annotations

from karat.formats.own.golden import GOLDEN
from karat.formats.tables.beir import BEIR
from karat.formats.tables.delimited import CSV, TSV
from karat.formats.tables.format import Format
from karat.formats.tables.jsonl import JSONL
from karat.formats.tables.msmarco import MSMARCO
from karat.formats.tables.nested import JSON
from karat.formats.tables.parquet import PARQUET
from karat.formats.tables.trec import TREC

FORMATS: dict[str, Format] = {
    entry.name: entry for entry in (TREC, BEIR, MSMARCO, CSV, TSV, JSONL, PARQUET, JSON, GOLDEN)
}
