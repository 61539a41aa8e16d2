"""Databases asked by SQL: PostgreSQL (full text, pgvector) and SQLite (FTS5, sqlite-vec)."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from karat.engines.search.engine import EngineError, Pace, document, fingerprint, numbers_of
from karat.engines.search.template import Values, check_params, fill_json, names_in, sql_parameters
from karat.errors import MissingExtra, UsageError
from karat.tables.engines import EngineAnswer, EngineConfig, EngineFacts, EngineQuery, Hit

_LARGEST = 16 << 20  # bytes of a value
_STEPS = 50_000  # of SQLite's virtual machine, between looks at the clock
_OTHER_FILES = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}


class SqlEngine(ABC):
    """A database whose ``template`` is one SELECT.

    Its columns ``id``, ``score`` and ``title`` are read by name; without a column ``id`` the first
    one is the id. Further columns with numbers are parts of the score. The connection is read-only.
    """

    def __init__(self, config: EngineConfig) -> None:
        where = f"[engine.{config.name}]"
        if not isinstance(config.template, str):
            raise UsageError(f"{where} has no template", fix='template = "queries/search.sql"')
        if not names_in(config.template) & {"query", "words", "vector"}:
            raise UsageError(f"{where}: the template has no {{query}}", fix="WHERE … {query} …")
        check_params([config.template, config.settings], config.params, where)
        self._config, self._pace = config, Pace(config.rate)
        self._sql, self._names = sql_parameters(config.template.strip().rstrip(";"), self._mark)
        self._pages = "from" in self._names
        self._spare: list[Any] = []
        self._lock = threading.Lock()

    @abstractmethod
    def _mark(self, name: str) -> str:
        """A parameter in SQL."""

    @abstractmethod
    def _connect(self) -> Any:
        """A new connection, read-only."""

    @abstractmethod
    def _described(self, error: Exception) -> EngineError | None:
        """An error of the database; None if it is another's."""

    @abstractmethod
    def facts(self) -> EngineFacts:
        """What it says about itself."""

    def _bound(self, value: Any) -> Any:
        return f"[{','.join(map(repr, map(float, value)))}]" if isinstance(value, list) else value

    def search(self, query: EngineQuery, size: int, *, explain: bool = False) -> EngineAnswer:
        """The first ``size`` documents; further pages where the template has ``{from}``."""
        hits: list[Hit] = []
        while True:
            want = min(size - len(hits), self._config.page) if self._pages else size
            values = Values(query, want, len(hits), self._config.params)
            bound = {f"p{at}": self._bound(values.of(name)) for at, name in enumerate(self._names)}
            self._pace.wait()
            page = [
                self._hit(row, explain=explain)
                for row in self.rows(self._sql, bound, size - len(hits))
            ]
            hits += page
            if not self._pages or len(page) < want or len(hits) >= size:
                return EngineAnswer(hits)

    def rows(
        self, sql: str, bound: Mapping[str, Any] | None = None, most: int = 100_000
    ) -> list[dict[str, Any]]:
        """The first rows of a query, by column."""
        with self._lock:
            connection = self._spare.pop() if self._spare else None
        try:
            if connection is None:
                connection = self._connect()
            found = self._read(connection, sql, bound or {}, most)
        except Exception as error:
            if connection is not None:
                connection.close()
            described = self._described(error)
            if described is None:
                raise
            raise described from None
        with self._lock:
            self._spare.append(connection)
        return found

    def _read(
        self, connection: Any, sql: str, bound: Mapping[str, Any], most: int
    ) -> list[dict[str, Any]]:
        cursor = connection.execute(sql, bound)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchmany(most)]

    def _hit(self, row: Mapping[str, Any], *, explain: bool = False) -> Hit:
        own, score, title = (
            self._config.id or "id",
            row.get(self._config.score or "score"),
            row.get(self._config.title or "title"),
        )
        doc_id = row[own] if own in row else next(iter(row.values()), None)
        if doc_id is None:
            raise EngineError("a row has no id", fix="select the id as the column id")
        try:
            number = None if score is None else float(score)
        except (TypeError, ValueError):
            raise EngineError(
                f"score is {score!r}, not a number", fix="select a number as score"
            ) from None
        others = {self._config.id or "id", self._config.score or "score"}
        return Hit(
            str(doc_id),
            number,
            None if title is None else str(title),
            numbers_of(row, others) if explain else None,
        )

    @abstractmethod
    def _by_ids(self, column: str, doc_ids: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """A query for the rows of the table with these ids, and its parameters."""

    def documents(self, doc_ids: Sequence[str]) -> list[dict[str, str | None]] | None:
        """The rows with these ids of the table that ``index`` names; None without ``index``."""
        if not self._config.index:
            return None
        own = self._config.id or "id"
        rows = self.rows(*self._by_ids(own.replace('"', '""'), doc_ids))
        return [document(self._config, str(row[own]), row) for row in rows]

    def close(self) -> None:
        with self._lock:
            for connection in self._spare:
                connection.close()
            self._spare.clear()


class Postgres(SqlEngine):
    """An engine of kind ``postgres``; ``index`` is the table whose rows are counted."""

    def __init__(self, config: EngineConfig) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("psycopg", "postgres", f"the engine {config.name}") from None
        self._psycopg = psycopg
        super().__init__(config)
        # psycopg reads % in SQL, which users write for LIKE and modulo.
        sql = str(config.template).strip().rstrip(";").replace("%", "%%")
        self._sql, self._names = sql_parameters(sql, self._mark)
        values = fill_json(config.settings, Values(EngineQuery(""), 0, params=config.params))
        self._settings = [(name, _setting(value)) for name, value in values.items()]

    def _mark(self, name: str) -> str:
        return f"%({name})s"

    def _connect(self) -> Any:
        milliseconds = round(self._config.timeout * 1000)
        connection = self._psycopg.connect(
            str(self._config.url),
            connect_timeout=max(2, round(self._config.timeout)),
            options=f"-c default_transaction_read_only=on -c statement_timeout={milliseconds}",
            application_name="karat",
        )
        connection.read_only = True
        return connection

    def _read(
        self, connection: Any, sql: str, bound: Mapping[str, Any], most: int
    ) -> list[dict[str, Any]]:
        """In a transaction of its own, whose end also undoes what SET and set_config changed."""
        for setting in self._settings:
            connection.execute("SELECT set_config(%s, %s, true)", setting)
        # Row by row, so that a query for millions fills no memory; closing it cancels the rest.
        with connection.cursor() as cursor, closing(cursor.stream(sql, bound)) as rows:
            first = list(islice(rows, most))
            names = [column.name for column in cursor.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in first]
        connection.rollback()
        return found

    def _described(self, error: Exception) -> EngineError | None:
        if not isinstance(error, self._psycopg.Error):
            return None
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, self._psycopg.errors.QueryCanceled):
            return EngineError(f"timeout after {self._config.timeout:g} s", again=True)
        if isinstance(error, self._psycopg.OperationalError):
            return EngineError(
                f"cannot reach PostgreSQL: {text}", fix="check url, and that it runs", again=True
            )
        return EngineError(f"PostgreSQL: {text}", fix="check the template")

    def facts(self) -> EngineFacts:
        """Version; rows, columns and counted changes of the table."""
        version = self.rows("SHOW server_version")[0]["server_version"]
        if not self._config.index:
            return EngineFacts(f"postgresql {version}")
        table = {"table": self._config.index}
        if self.rows("SELECT to_regclass(%(table)s) AS found", table)[0]["found"] is None:
            raise EngineError(
                f"no table {self._config.index}", fix=f"check index in [engine.{self._config.name}]"
            )
        columns = self.rows(
            "SELECT attname, atttypid::regtype::text AS type FROM pg_attribute "
            "WHERE attrelid = to_regclass(%(table)s) AND attnum > 0 ORDER BY attnum",
            table,
        )
        count = self.rows(f"SELECT count(*) AS n FROM {self._table()}")[0]["n"]  # noqa: S608 - quoted by PostgreSQL
        changes = self.rows(
            "SELECT n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_all_tables "
            "WHERE relid = to_regclass(%(table)s)",
            table,
        )
        indexes = self.rows(
            "SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made, "
            "pg_size_pretty(pg_relation_size(indexrelid)) AS size FROM pg_index "
            "JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam "
            "WHERE indrelid = to_regclass(%(table)s) AND amname IN ('hnsw', 'ivfflat') ORDER BY 1",
            table,
        )
        size = self.rows("SELECT pg_total_relation_size(to_regclass(%(table)s)) AS n", table)[0][
            "n"
        ]
        vectors = [
            f"{i['name']}: {i['made'].partition(' USING ')[2]}, {i['size']}" for i in indexes
        ]
        return EngineFacts(
            f"postgresql {version}",
            count,
            fingerprint(columns, count, changes),
            vectors="; ".join(vectors) or None,
            size=size,
        )

    def _table(self) -> str:
        """The table's name, quoted by PostgreSQL where it must be."""
        table = {"table": self._config.index}
        return str(self.rows("SELECT to_regclass(%(table)s)::text AS name", table)[0]["name"])

    def _by_ids(self, column: str, doc_ids: Sequence[str]) -> tuple[str, dict[str, Any]]:
        column = column.replace("%", "%%")
        sql = f'SELECT * FROM {self._table()} WHERE "{column}"::text = ANY(%(ids)s)'  # noqa: S608 - quoted
        return sql, {"ids": list(doc_ids)}


def _setting(value: Any) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


class Sqlite(SqlEngine):
    """An engine of kind ``sqlite``; ``url`` is the path of the database."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self._file = Path(config.root / str(config.url).removeprefix("sqlite:///"))
        if not self._file.is_file():
            raise UsageError(f"[engine.{config.name}]: no file {self._file}", fix='url = "docs.db"')

    def _mark(self, name: str) -> str:
        return f":{name}"

    def _connect(self) -> Any:
        uri = f"{self._file.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._config.timeout, check_same_thread=False
        )
        if "vector" in self._names:
            _load_vectors(connection, self._config.name)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        # A read-only database could still ATTACH, or VACUUM INTO, another file.
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_DENY if action in _OTHER_FILES else sqlite3.SQLITE_OK
        )
        return connection

    def _read(
        self, connection: Any, sql: str, bound: Mapping[str, Any], most: int
    ) -> list[dict[str, Any]]:
        end = time.monotonic() + self._config.timeout
        connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        return super()._read(connection, sql, bound, most)

    def _described(self, error: Exception) -> EngineError | None:
        if not isinstance(error, sqlite3.Error):
            return None
        if str(error) == "interrupted":
            return EngineError(f"timeout after {self._config.timeout:g} s", again=True)
        fix = (
            "in FTS5 write MATCH {words}, which quotes each word"
            if "fts5" in str(error)
            else "check the template"
        )
        return EngineError(f"SQLite: {error}", fix=fix, again="locked" in str(error))

    def facts(self) -> EngineFacts:
        """Version; schema and rows of the table, and size and time of the file."""
        version = self.rows("SELECT sqlite_version() AS version")[0]["version"]
        schema = self.rows("SELECT name, sql FROM sqlite_master ORDER BY name")
        file = self._file.stat()
        count = None
        if self._config.index:
            if self._config.index not in {row["name"] for row in schema}:
                raise EngineError(
                    f"no table {self._config.index}",
                    fix=f"check index in [engine.{self._config.name}]",
                )
            count = self.rows(f"SELECT count(*) AS n FROM {self._table()}")[0]["n"]  # noqa: S608 - quoted
        mark = fingerprint(schema, count, file.st_size, file.st_mtime_ns)
        return EngineFacts(f"sqlite {version}", count, mark, size=file.st_size)

    def _table(self) -> str:
        """The table's name, quoted."""
        name = self._config.index.replace('"', '""')
        return f'"{name}"'

    def _by_ids(self, column: str, doc_ids: Sequence[str]) -> tuple[str, dict[str, Any]]:
        sql = (
            f'SELECT * FROM {self._table()} WHERE CAST("{column}" AS TEXT) '  # noqa: S608 - quoted
            "IN (SELECT value FROM json_each(:ids))"
        )
        return sql, {"ids": json.dumps(list(doc_ids))}


def _load_vectors(connection: sqlite3.Connection, engine: str) -> None:
    try:
        import sqlite_vec  # type: ignore[import-not-found]
    except ImportError:
        raise MissingExtra("sqlite-vec", "engines", f"{{vector}} in the engine {engine}") from None
    if not hasattr(connection, "enable_load_extension"):
        raise UsageError(
            "this Python cannot load extensions of SQLite",
            fix="use a Python with enable_load_extension, such as Debian's",
        )
    connection.enable_load_extension(True)
    sqlite_vec.load(connection)
    connection.enable_load_extension(False)
