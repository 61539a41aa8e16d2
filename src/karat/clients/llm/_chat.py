"""A judge behind an OpenAI-compatible API of chat completions."""

from __future__ import annotations

import json
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from karat.clients.llm.asking import PAIR_HEADER, NoReply, Question, Reply, read_completion
from karat.engines.search.http import certificates, host_of, quoted
from karat.errors import MissingExtra
from karat.golden.judge_prompt import request
from karat.tables.golden.machine_judges import JudgeConfig

_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_WEAKER = {"json_schema": "json_object", "json_object": "text"}
_NAMES = "response_format", "json_schema", "json_object", "maxLength"
_CONNECT = 5.0  # seconds
_IDLE = 5.0  # seconds that a connection is kept
_LARGEST = 4 << 20  # bytes of a reply


class Chat:
    """Asks one pair a request; safe to use from many tasks of one event loop."""

    def __init__(self, config: JudgeConfig) -> None:
        try:
            import httpcore2
            import httpx2
        except ImportError:
            raise MissingExtra("httpx2", "engines", config.where) from None
        self._http = httpcore2
        self._url = f"{config.base_url.rstrip('/')}/chat/completions"
        self._host = host_of(self._url, f"{config.where} base_url", "http://localhost:8080/v1")
        self._config = config
        self._response: str = config.response
        self._limit, self._lengths = "max_tokens", True
        headers = {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "karat",
        } | {name: str(value) for name, value in config.headers.items()}
        if config.api_key is not None:
            headers["authorization"] = f"Bearer {config.api_key}"
        # What httpx2 would do below its client: a third of the time of a request.
        asked = httpx2.Request("POST", self._url, headers=headers)
        url = asked.url
        self._to = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        length = b"content-length"  # of no content
        self._headers = [each for each in asked.headers.raw if each[0].lower() != length]
        timeout = httpx2.Timeout(config.timeout, connect=min(_CONNECT, config.timeout))
        self._within = {"timeout": timeout.as_dict()}
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(
                verify=certificates(config, self._url), trust_env=False
            ),
            max_connections=None,
            max_keepalive_connections=128,
            keepalive_expiry=_IDLE,
        )

    async def ask(self, question: Question) -> Reply:
        pair = question.pair
        names = (pair.query_id, pair.doc_id, str(question.replicate))
        named = "/".join(quote(name, safe="") for name in names).encode()
        http = self._http
        while True:
            form = self._response, self._limit, self._lengths
            asked_for = request(
                self._config, question.chat, question.max_tokens, bounded=self._lengths
            )
            body = self._adapted(asked_for)
            content = json.dumps(body, ensure_ascii=False).encode()
            asked = http.Request(
                "POST",
                self._to,
                headers=[
                    *self._headers,
                    (b"content-length", b"%d" % len(content)),
                    (PAIR_HEADER.encode(), named),
                ],
                content=content,
                extensions=self._within,
            )
            try:
                reply = await self._pool.handle_async_request(asked)
                try:
                    data = await self._bounded(reply)
                finally:
                    await reply.aclose()
            except (http.ConnectError, http.ConnectTimeout) as error:
                raise NoReply(f"cannot reach {self._host}: {_line(error)}", again=True) from None
            except http.TimeoutException:
                what = f"timeout after {self._config.timeout:g} s"
                # A local server answers few at once, and lets the others wait.
                raise NoReply(what, again=True, billed=True, slower=True) from None
            except (http.NetworkError, http.ProtocolError) as error:
                what = f"{self._host} dropped the connection: {_line(error)}"
                raise NoReply(what, again=True, billed=True) from None
            if reply.status < 300:
                return self._read(reply, data)
            if not self._weakened(reply.status, data, form):
                raise self._refused(reply, data)

    async def _bounded(self, reply: Any) -> bytes:
        parts, size = [], 0
        async for part in reply.stream:
            parts.append(part)
            size += len(part)
            if size > _LARGEST:
                raise NoReply(f"{self._host} returned more than {_LARGEST >> 20} MiB", billed=True)
        return b"".join(parts)

    def _adapted(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request in the dialect that this server was found to need."""
        if self._response != self._config.response:
            body.pop("response_format", None)
            if self._response == "json_object":
                body["response_format"] = {"type": "json_object"}
        if self._limit != "max_tokens":
            body[self._limit] = body.pop("max_tokens")
        return body

    def _weakened(self, status: int, data: bytes, form: tuple[str, str, bool]) -> bool:
        """Whether the server refuses a form of request for which there is another one.

        Requests that were sent in the same form at the same time weaken it once.
        """
        said = data[:5000].decode("utf-8", "replace")
        response, limit, lengths = form
        if status not in {400, 422}:
            return False
        if "max_completion_tokens" in said and limit == "max_tokens":
            self._limit = "max_completion_tokens"
            return True
        named = any(word in said for word in _NAMES)
        if not named or response not in _WEAKER:
            return False
        if response == "json_schema" and lengths:  # strict modes of some providers have none
            self._lengths = False
            return True
        if self._response == response:
            self._response = _WEAKER[response]
        return True

    def _read(self, reply: Any, data: bytes) -> Reply:
        try:
            answer = json.loads(data)
            return read_completion(answer, _header(reply, b"x-request-id") or None, reply.status)
        except (ValueError, RecursionError):
            what = f"{self._host} returned no chat completion: {quoted(data)}"
            raise NoReply(what, again=True, billed=True, http=reply.status) from None

    def _refused(self, reply: Any, data: bytes) -> NoReply:
        status, said = reply.status, quoted(data)
        fixes = {
            401: "check api_key",
            403: "the key does not allow this model",
            404: "check base_url and model",
        }
        return NoReply(
            f"{self._host} answered {status}: {said}",
            again=status in _AGAIN,
            after=_seconds(_header(reply, b"retry-after")),
            fatal=status in fixes or (status in {400, 422} and "model" in said.lower()),
            billed=status >= 500,
            slower=status in {429, 503, 529},
            http=status,
            fix=fixes.get(status, "check model and the settings of the judge"),
        )

    async def close(self) -> None:
        await self._pool.aclose()


def _header(reply: Any, name: bytes) -> str:
    """The value of a header of a reply; empty without one."""
    values = (value for key, value in reply.headers if key.lower() == name)
    return next(values, b"").decode("latin-1")


def _seconds(text: str) -> float:
    """Of a Retry-After header: seconds, or a date."""
    try:
        return min(max(float(text), 0.0), 86_400.0)
    except ValueError:
        pass
    with suppress(ValueError, TypeError):
        from datetime import UTC, datetime

        left = parsedate_to_datetime(text) - datetime.now(UTC)
        return min(max(left.total_seconds(), 0.0), 86_400.0)
    return 0.0


def _line(value: Any) -> str:
    text = " ".join(str(value).split()) or type(value).__name__
    return "".join(char if char.isprintable() else "?" for char in text)[:300]
