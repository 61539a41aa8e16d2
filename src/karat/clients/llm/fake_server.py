"""A server of chat completions that knows the true grades and errs as often as is set.

For tests and rehearsals without a key: the agreement of such a judge, and what its grades are
worth, are known. The same pair and replicate always get the same grade.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from karat.clients.llm.asking import PAIR_HEADER
from karat.errors import InputError, UsageError
from karat.golden.judge_prompt import number

MODEL = "karat-fake"
_SUM = 1e-6  # how far from 1 the sum of a row may be


def read_confusion(path: Path) -> list[list[float]]:
    """A matrix of chances: a row for each true grade, a column for each given one.

    Raises:
        InputError: not a square matrix of chances whose rows add up to 1.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            lines = [(n, row) for n, row in enumerate(csv.reader(stream), 1) if row]
        rows = [(n, [float(cell) for cell in row]) for n, row in lines]
    except (OSError, ValueError) as error:
        raise InputError(f"not a matrix of numbers: {error}", file=str(path)) from None
    for line, row in rows:
        if len(row) != len(rows) or len(row) < 2:
            raise InputError(
                f"{len(row)} columns and {len(rows)} rows: not square", file=str(path), line=line
            )
        if min(row) < 0 or not abs(sum(row) - 1) <= _SUM:
            raise InputError(
                f"the row adds up to {sum(row):g}, not to 1", file=str(path), line=line
            )
    if not rows:
        raise InputError("the file is empty", file=str(path))
    return [row for _, row in rows]


class FakeJudge:
    """Grades pairs by chance.

    Args:
        grades: True grade by query and document; others have the lowest grade.
        confusion: As ``read_confusion`` returns it, for the grades of the scale.
        scale: The grades, ascending; from 0 in steps of 1 if None.
        seed: Of all chances.
    """

    def __init__(
        self,
        grades: Mapping[tuple[str, str], float],
        confusion: Sequence[Sequence[float]],
        scale: Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        self._scale = list(map(float, range(len(confusion)))) if scale is None else list(scale)
        off = {grade for grade in grades.values() if grade not in self._scale}
        if off:
            raise UsageError(
                f"the grade {min(off):g} has no row: the matrix has {len(confusion)} rows, "
                f"for the grades {', '.join(f'{grade:g}' for grade in self._scale)}",
                fix="a row and a column for each grade",
            )
        self._grades, self._confusion, self._seed = grades, confusion, seed

    def grade(self, query_id: str, doc_id: str, replicate: str = "0") -> float:
        """The grade that it gives."""
        row = self._confusion[
            self._scale.index(self._grades.get((query_id, doc_id), self._scale[0]))
        ]
        text = json.dumps([self._seed, query_id, doc_id, replicate])
        drawn = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
        for grade, chance in zip(self._scale, row, strict=True):
            drawn -= chance
            if drawn < 0:
                return grade
        return max(g for g, chance in zip(self._scale, row, strict=True) if chance > 0)

    def answer(self, pair: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The chat completion for a request whose header names the pair."""
        names = [unquote(name) for name in pair.split("/")]
        grade = self.grade(names[0], names[1], names[2] if len(names) > 2 else "0")
        text = body["messages"][1]["content"]
        document = json.loads(text).get("document", {})
        words = (document.get("body") or document.get("title") or "").split()[:8]
        verdict = {
            "intent_match": "by the fake server",
            "evidence": " ".join(words),
            "reason": "a made-up grade",
            "instructions_in_document": False,
            "cannot_judge": None,
            "grade": number(grade),
        }
        if not words:
            verdict |= {"cannot_judge": "document_empty", "grade": None}
        said = json.dumps(verdict)
        asked = sum(len(message["content"]) for message in body["messages"])
        return {
            "id": f"fake-{hashlib.sha256(pair.encode()).hexdigest()[:16]}",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": said},
                }
            ],
            "usage": {
                "prompt_tokens": asked // 4,
                "completion_tokens": len(said) // 4,
                "total_tokens": asked // 4 + len(said) // 4,
            },
        }


def serve(judge: FakeJudge, port: int, started: Callable[[str], None]) -> None:
    """Answer on loopback until interrupted; ``started`` gets the base_url."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            pair = self.headers.get(PAIR_HEADER, "")
            if self.path != "/v1/chat/completions":
                self._send(404, _error(f"no {self.path}; POST /v1/chat/completions"))
            elif "/" not in pair:
                self._send(400, _error(f"no header {PAIR_HEADER}: QUERY/DOCUMENT"))
            else:
                try:
                    self._send(200, judge.answer(pair, json.loads(data)))
                except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
                    self._send(400, _error(f"not a request for a judgment: {error!r}"))

        def do_GET(self) -> None:
            listed = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
            known = self.path == "/v1/models"
            self._send(200 if known else 404, listed if known else _error(f"no {self.path}"))

        def _send(self, status: int, content: Mapping[str, Any]) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: Any) -> None:
            """Requests are not logged."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128  # as many as may connect at once

    try:
        server = Server(("127.0.0.1", port), Handler)
    except OSError as error:
        raise UsageError(f"port {port}: {error}", fix="--port 0 for a free one") from None
    with server:
        started(f"http://127.0.0.1:{server.server_address[1]}/v1")
        server.serve_forever()


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}
