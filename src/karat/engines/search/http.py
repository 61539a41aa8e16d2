"""HTTP requests to a search engine: bounded, paced, with errors that name the engine."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from karat.engines.search.engine import EngineError, Pace
from karat.errors import MissingExtra, UsageError
from karat.tables.engines import EmbedConfig, EngineConfig
from karat.tables.golden.machine_judges import JudgeConfig

LARGEST = 64 << 20  # largest reply, in bytes
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_LONGEST_AFTER = 30.0  # seconds that an engine can ask to wait
_QUOTED = 300  # characters of a reply in an error


class Calls:
    """Requests to one engine or endpoint; for the arguments see its declaration."""

    def __init__(self, config: EngineConfig | EmbedConfig) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtra("httpx2", "engines", config.where) from None
        self._httpx, self.config, self._pace = httpx2, config, Pace(config.rate)
        self.base = str(config.url).rstrip("/")
        self.host = host_of(self.base, f"{config.where} url", "https://search.example.org:9200")
        self._headers = httpx2.Headers(
            {"user-agent": "karat", "accept": "application/json", "accept-encoding": "gzip"}
            | _credentials(self.base)
            | {name: str(value) for name, value in config.headers.items()}
        )
        self._timeout = {"timeout": httpx2.Timeout(config.timeout).as_dict()}
        # Without a Client, whose cookies, redirects and events (none of them wanted here) cost a
        # fifth of a request's time.
        self._http = httpx2.HTTPTransport(
            verify=certificates(config, self.base),
            trust_env=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
        )

    def json(self, method: str, url: str, body: Any = None, *, missing: bool = False) -> Any:
        """The JSON of a reply; with ``missing``, None for 404."""
        self._pace.wait()
        status, data, headers = self._reply(method, url, body)
        if status == 404 and missing:
            return None
        if status >= 300:
            raise self._refused(status, data, headers)
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise EngineError(
                f"{self.host} returned no JSON: {quoted(data)}",
                fix="check url: it may be a web page, not an API",
            ) from None

    def _reply(self, method: str, url: str, body: Any) -> tuple[int, bytes, Mapping[str, str]]:
        deadline = time.monotonic() + self.config.timeout
        parts: list[bytes] = []
        size = 0
        try:
            request = self._httpx.Request(
                method, url, headers=self._headers, json=body, extensions=self._timeout
            )
            with closing(self._http.handle_request(request)) as reply:
                for part in reply.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > LARGEST:
                        raise EngineError(
                            f"{self.host} returned more than {LARGEST >> 20} MiB",
                            fix="ask for fewer documents, or for fewer fields of each",
                        )
                    if time.monotonic() > deadline:
                        raise self._late()
                return reply.status_code, b"".join(parts), reply.headers
        except self._httpx.TimeoutException:
            raise self._late() from None
        except (self._httpx.InvalidURL, self._httpx.UnsupportedProtocol) as error:
            raise EngineError(f"invalid address: {error}", fix="check url") from None
        except self._httpx.HTTPError as error:
            kind = str(error).partition("\n")[0] or type(error).__name__
            raise EngineError(
                f"cannot reach {self.host}: {kind}",
                fix="check that the engine runs, and its url",
                again=True,
            ) from None

    def _late(self) -> EngineError:
        return EngineError(
            f"timeout after {self.config.timeout:g} s",
            fix=f"timeout = {self.config.timeout * 3:g} in {self.config.where}",
            again=True,
        )

    def _refused(self, status: int, data: bytes, headers: Mapping[str, str]) -> EngineError:
        fixes = {
            401: "check the credentials in headers",
            403: "the credentials do not allow this",
            404: "check index and url",
            429: "set a lower rate, or a lower --concurrency",
        }
        after = headers.get("retry-after", "")
        return EngineError(
            f"{self.host} answered {status}: {quoted(data)}",
            fix=fixes.get(status, "check the template" if status < 500 else None),
            again=status in _AGAIN,
            after=min(float(after), _LONGEST_AFTER) if after[:6].isdigit() else 0.0,
        )

    def close(self) -> None:
        self._http.close()


def _credentials(url: str) -> dict[str, str]:
    """The header for a user and a password in an address."""
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def host_of(url: str, setting: str, example: str) -> str:
    """The host of an address; UsageError if it is not one."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "{" in parts.netloc:
        name = setting.rpartition(" ")[2]
        raise UsageError(f"{setting} is not an address", fix=f'{name} = "{example}"')
    return parts.hostname


def certificates(config: EngineConfig | EmbedConfig | JudgeConfig, url: str) -> Any:
    """What a client of httpx2 verifies an address with."""
    if not config.ca:
        return url.startswith("https:")  # loading certificates takes longer than a request
    import ssl

    try:
        return ssl.create_default_context(cafile=str(config.root / config.ca))
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"{config.where} ca: {config.ca} cannot be read: {error}",
            fix="ca is a file of certificates in PEM form",
        ) from None


def quoted(data: bytes) -> str:
    """The reason in a reply: an engine's own field for it, or the beginning, in one line."""
    text = data[:20_000].decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        text = _reason(json.loads(data)) or text
    line = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(line.split())
    return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}…"


def _reason(reply: Any) -> str:
    """``error.reason`` (OpenSearch, Elasticsearch), ``error.msg`` (Solr), or ``message``."""
    if not isinstance(reply, dict):
        return ""
    error = reply.get("error", reply.get("message", reply.get("detail", "")))
    if isinstance(error, dict):
        causes = error.get("root_cause")
        first = causes[0].get("reason") if isinstance(causes, list) and causes else None
        error = first or error.get("reason") or error.get("msg") or error.get("message") or ""
    return str(error)
