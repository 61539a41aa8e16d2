"""Batch files of chat completions, in OpenAI's shape: requests out, answers in.

A request has the key of its judgment as ``custom_id``; answers have any order, some of them are
missing, those that failed perhaps in a file of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from karat.clients.llm.asking import NoReply, Question, Reply, read_completion
from karat.errors import InputError
from karat.golden.judge_prompt import key, messages, request
from karat.tables.golden.machine_judges import JudgeConfig, JudgePair


def batch_line(config: JudgeConfig, pair: JudgePair) -> str:
    """The request about a pair, as a line."""
    return json.dumps(
        {
            "custom_id": key(config, pair),
            "method": "POST",
            "url": f"{urlsplit(config.base_url).path.rstrip('/')}/chat/completions",
            "body": request(config, messages(config, pair)),
        },
        ensure_ascii=False,
    )


@dataclass(frozen=True)
class Answer:
    """A line of a file of answers."""

    number: str  # of the request at the API, or of the line itself
    status: int
    body: Any
    error: str  # why there is no answer; empty if there is one


def read_answers(paths: Sequence[str | Path]) -> dict[str, Answer]:
    """The answers by the key of their judgment.

    Raises:
        InputError: a file that cannot be read, or a line without ``custom_id``.
    """
    found: dict[str, Answer] = {}
    for path in paths:
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise InputError(f"cannot be read: {error}", file=str(path)) from None
        for place, line in enumerate(lines, 1):
            if line.strip():
                name, answer = _answer(line, str(path), place)
                # Of a pair that failed and was answered, the answer counts.
                if name not in found or not answer.error:
                    found[name] = answer
    return found


def _answer(line: str, path: str, place: int) -> tuple[str, Answer]:
    try:
        row = json.loads(line)
        name, reply = row["custom_id"], row.get("response") or {}
        number = row.get("id") or reply.get("request_id") or sha256(line.encode()).hexdigest()
        status, body = int(reply.get("status_code") or 0), reply.get("body")
        error = row.get("error")
        if error or not 200 <= status < 300:
            said = error or (body or {}).get("error") or f"status {status}"
            said = said.get("message") or said.get("code") if isinstance(said, dict) else said
            return str(name), Answer(str(number), status, None, str(said)[:300])
        return str(name), Answer(str(number), status, body, "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(
            "not an answer of a batch", file=path, line=place,
            fix="a line has custom_id, and response or error",
        ) from None  # fmt: skip


class Batch:
    """A judge that has answered already."""

    def __init__(self, config: JudgeConfig, answers: Mapping[str, Answer]) -> None:
        self._config, self._answers = config, answers

    async def ask(self, question: Question) -> Reply:
        answer = self._answers[key(self._config, question.pair, question.replicate)]
        about: dict[str, Any] = {"http": answer.status or None, "request_id": answer.number}
        if answer.error:
            raise NoReply(answer.error, billed=answer.status >= 500, **about)
        try:
            return read_completion(answer.body, answer.number, answer.status)
        except ValueError:
            raise NoReply("no chat completion", billed=True, **about) from None

    async def close(self) -> None:
        """Nothing is open."""
