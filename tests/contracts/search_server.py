"""A search API over SQLite FTS5, in thirty lines: the peer of an engine of kind ``http``."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class SearchServer(ThreadingHTTPServer):
    """Answers ``/search?q=…&n=…&from=…`` and ``/documents/ID`` from a database.

    ``trouble`` is what goes wrong.
    """

    daemon_threads = True

    def __init__(self, database: Path, sql: str, by_id: str = "", port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.database, self.sql, self.by_id = database, sql, by_id
        self.asked: list[str] = []
        self.trouble: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SearchServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        trouble = self.server.trouble.pop(0) if self.server.trouble else None
        if isinstance(trouble, float):
            time.sleep(trouble)
        if trouble == "drop":
            self.close_connection = True
            return
        if isinstance(trouble, tuple):
            self._send(*trouble)
            return
        if self.path.startswith("/documents/"):
            self._document(unquote(self.path.removeprefix("/documents/")))
            return
        given = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
        words = " OR ".join(f'"{word}"' for word in given["q"].split())
        with sqlite3.connect(self.server.database) as database:
            bound = {"p0": words, "p1": int(given["n"]), "p2": int(given.get("from", 0))}
            rows = database.execute(self.server.sql, bound).fetchall()
        results = [{"id": i, "rank": {"score": s}, "title": t} for i, s, t in rows]
        self._send(200, {"took_ms": 1.5, "results": results})

    def _document(self, doc_id: str) -> None:
        with sqlite3.connect(self.server.database) as database:
            database.row_factory = sqlite3.Row
            row = database.execute(self.server.by_id, (doc_id,)).fetchone()
        self._send(404, {"error": "not found"}) if row is None else self._send(200, dict(row))

    def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None: ...


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[Any]:
    """The server, answering until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
