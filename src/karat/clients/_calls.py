"""HTTP requests to a karat server, with its errors as exceptions."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from karat.errors import InputError, KaratError, MissingExtra, UsageError

URL, TOKEN = "KARAT_URL", "KARAT_TOKEN"
"""Environment variables with the server's URL and the API token."""
_AGAIN = {429, 502, 503, 504}
_LONGEST_WAIT = 10.0
_CHUNK = 1 << 20
_HINTS = {
    "not_signed_in": f"create a token on the account page and pass it as token= or {TOKEN}",
    "not_allowed": "use a token with this permission, of a user who is allowed to",
    "too_large": "raise the limit of karat serve",
}


class Calls:
    """Requests to one server; for the arguments see ``karat_server.Client``."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        *,
        timeout: float,
        retries: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            import httpx2
        except ImportError:
            raise MissingExtra("httpx2", "web", "a client of karat") from None
        self._httpx = httpx2
        self.url = _checked(os.environ.get(URL, "") if url is None else url)
        secret = os.environ.get(TOKEN, "") if token is None else token
        if not secret.isascii() or not secret.isprintable():
            raise UsageError("the token contains invalid characters", fix="copy it again")
        headers = {"user-agent": "karat", "accept": "application/json"}
        if secret.strip():
            headers["authorization"] = f"Bearer {secret.strip()}"
        self.retries, self.sleep = retries, sleep
        self.http = httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        return self._json(self._sent("GET", path, params=params, safe=True))

    def post(self, path: str, *, safe: bool = False, **body: Any) -> dict[str, Any]:
        """POST a JSON body; ``safe`` requests change nothing and are retried."""
        return self._json(self._sent("POST", path, json=body, safe=safe))

    def delete(self, path: str, **params: Any) -> None:
        self._json(self._sent("DELETE", path, params=params))

    def upload(
        self, path: str, file: str | Path | tuple[str, bytes], **params: Any
    ) -> dict[str, Any]:
        """POST a file, or bytes under a name."""
        how: dict[str, Any] = {"headers": {"content-type": "application/octet-stream"}}
        with _stream_of(file) as (name, stream):
            content = iter(lambda: stream.read(_CHUNK), b"")
            params["name"] = name
            return self._json(self._sent("POST", path, params=params, content=content, **how))

    def rows(self, path: str, **params: Any) -> list[dict[str, Any]]:
        """All rows of a paginated list."""
        rows: list[dict[str, Any]] = []
        page = 1
        while True:
            response = self.get(path, **params, page=page, per=1000)
            rows += response["items"]
            if response["next"] is None:
                return rows
            page += 1

    @contextmanager
    def download(self, path: str, **params: Any) -> Iterator[Any]:
        with self._named_errors():
            request = self.http.build_request("GET", self._at(path), params=_set_params(params))
            response = self.http.send(request, stream=True)
            try:
                if response.status_code != 200:
                    response.read()
                    raise self._error(response)
                yield response
            finally:
                response.close()

    def close(self) -> None:
        self.http.close()

    def _at(self, path: str) -> str:
        return f"{self.url}/api{path}"

    def _sent(
        self, method: str, path: str, *, params: Any = None, safe: bool = False, **how: Any
    ) -> Any:
        from tenacity import Retrying, retry_if_exception_type, retry_if_result, stop_after_attempt

        def once() -> Any:
            with self._named_errors():
                return self.http.request(
                    method, self._at(path), params=_set_params(params or {}), **how
                )

        calling = Retrying(
            sleep=self.sleep,
            stop=stop_after_attempt(self.retries + 1 if safe else 1),
            wait=_wait,
            retry=retry_if_exception_type(_NoResponse)
            | retry_if_result(lambda response: response.status_code in _AGAIN),
            retry_error_callback=lambda last: last.outcome.result() if last.outcome else None,
        )
        response = calling(once)
        if response.status_code >= 300:
            raise self._error(response)
        return response

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Name the host in transport errors."""
        host = urlsplit(self.url).netloc
        try:
            yield
        except self._httpx.TimeoutException:
            what = f"{host} did not respond in time"
            raise _NoResponse(what, fix="set a longer timeout=") from None
        except self._httpx.InvalidURL as error:
            raise UsageError(f"invalid URL: {error}") from None
        except self._httpx.TransportError as error:
            kind = str(error).partition("\n")[0] or type(error).__name__
            raise _NoResponse(f"cannot reach {host}: {kind}", fix=f"check {URL}") from None
        except self._httpx.HTTPError as error:
            raise _NoResponse(f"invalid response of {host} ({type(error).__name__})") from None

    def _json(self, response: Any) -> dict[str, Any]:
        try:
            content = response.json()
        except (ValueError, RecursionError):
            raise self._unexpected(response) from None
        if not isinstance(content, dict):
            raise self._unexpected(response)
        return content

    def _error(self, response: Any) -> KaratError:
        """The error in a response, in the server's words."""
        if 300 <= response.status_code < 400:
            target = urlsplit(response.headers.get("location", "")).netloc
            what = f"{urlsplit(self.url).netloc} redirects{f' to {target}' if target else ''}"
            return UsageError(what, fix="use the URL it redirects to, perhaps with https")
        try:
            error = response.json()["error"]
            code, message = str(error["code"]), str(error["message"])
            where, nearest, fix = error.get("where") or {}, error.get("nearest") or (), error["fix"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return self._unexpected(response)
        if code == "input":
            names = ("file", "line", "query", "doc_id")
            return InputError(message, fix=fix, **{n: where[n] for n in names if n in where})
        if code in {"error", "missing_extra"}:
            return KaratError(message, fix=fix)
        return UsageError(message, nearest=nearest, fix=fix or _HINTS.get(code))

    def _unexpected(self, response: Any) -> KaratError:
        host = urlsplit(self.url).netloc
        return KaratError(
            f"unexpected response of {host} (status {response.status_code}): not a karat server?",
            fix=f"check {URL}: the URL of the karat server, including any path",
        )


class _NoResponse(KaratError):
    """No response; safe requests may be retried."""


def _wait(state: Any) -> float:
    """Seconds until the next try: as the server says, else longer each time."""
    after = "" if state.outcome.failed else state.outcome.result().headers.get("retry-after", "")
    wait = float(after[:6]) if after.isascii() and after.isdigit() else None
    return min(0.5 * 2.0 ** (state.attempt_number - 1) if wait is None else wait, _LONGEST_WAIT)


@contextmanager
def _stream_of(given: str | Path | tuple[str, bytes]) -> Iterator[tuple[str, BinaryIO]]:
    """Name and stream of a file or of bytes; raises InputError if a file cannot be read."""
    if isinstance(given, tuple):
        yield given[0], io.BytesIO(given[1])
        return
    try:
        stream = Path(given).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(given)) from None
    with stream:
        yield Path(given).name, stream


def text_of(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None


def save(response: Any, path: Path) -> None:
    """Save a download; a temporary file keeps it from being half-written."""
    part = path.with_name(f".{path.name[:80]}.part")
    try:
        with part.open("wb") as out:
            for chunk in response.iter_bytes():
                out.write(chunk)
        part.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def _set_params(params: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in params.items():
        if value is not None and value not in ([], ""):
            out[name] = str(value).lower() if isinstance(value, bool) else value
    return out


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        fine = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    fix = f"https://karat.example.org, as url= or {URL}"
    if not fine:
        what = f"invalid URL {url.strip()!r}" if url.strip() else "no URL of a karat server"
        raise UsageError(what, fix=fix)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError("the URL may not include a password, query or fragment", fix=fix)
    return url.strip().rstrip("/").removesuffix("/api")
