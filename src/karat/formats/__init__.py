"""File formats: reading and writing files, standard input and BEIR folders."""

from karat.formats.own.certificate import read_certificate, write_certificate
from karat.formats.tables.catalogue import FORMATS
from karat.formats.tables.format import ROLES, Format
from karat.formats.tables.reading import (
    holds_queries,
    read_documents,
    read_pairs,
    read_qrels,
    read_queries,
    read_run,
    stem,
)
from karat.formats.tables.writing import (
    write_documents,
    write_pairs,
    write_qrels,
    write_queries,
    write_run,
)

__all__ = [
    "FORMATS",
    "ROLES",
    "Format",
    "holds_queries",
    "read_certificate",
    "read_documents",
    "read_pairs",
    "read_qrels",
    "read_queries",
    "read_run",
    "stem",
    "write_certificate",
    "write_documents",
    "write_pairs",
    "write_qrels",
    "write_queries",
    "write_run",
]
