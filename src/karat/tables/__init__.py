"""What the data is: the tables, and every column of every table (``schema``)."""

from karat.tables.documents import Documents, Pairs
from karat.tables.qrels import Qrels
from karat.tables.queries import Queries
from karat.tables.results import QueryValue, Result, Results, State
from karat.tables.run import Run

__all__ = [
    "Documents",
    "Pairs",
    "Qrels",
    "Queries",
    "QueryValue",
    "Result",
    "Results",
    "Run",
    "State",
]
