"""Every format by the name ``--input-format`` knows it by: one file, one entry."""

from __future__ import annotations

from karat.formats.beir import BEIR
from karat.formats.delimited import CSV, TSV
from karat.formats.format import Format
from karat.formats.golden import GOLDEN
from karat.formats.jsonl import JSONL
from karat.formats.msmarco import MSMARCO
from karat.formats.nested import JSON
from karat.formats.parquet import PARQUET
from karat.formats.trec import TREC

FORMATS: dict[str, Format] = {
    entry.name: entry for entry in (TREC, BEIR, MSMARCO, CSV, TSV, JSONL, PARQUET, JSON, GOLDEN)
}
