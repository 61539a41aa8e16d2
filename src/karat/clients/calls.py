"""Calls: requests to a karat that is served, and what becomes of its errors."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from karat.errors import InputError, KaratError, MissingExtra, UsageError

URL, TOKEN = "KARAT_URL", "KARAT_TOKEN"
"""The environment variables that say where karat is served, and by which token to come in."""
_AGAIN = {429, 502, 503, 504}
_LONGEST_WAIT = 10.0
_CHUNK = 1 << 20
_HINTS = {
    "not_signed_in": f"make a token on the account page, and give it as token= or {TOKEN}",
    "not_allowed": "use a token that is good for it, of somebody who may",
    "too_large": "karat serve can allow more",
}


class Calls:
    """Calls of one server.

    Args:
        url: Where karat is served, a path of a proxy included; ``KARAT_URL`` if None.
        token: An API token; ``KARAT_TOKEN`` if None.
        timeout: Seconds without a sign of life, of a connection or of an answer.
        retries: How often a safe request is sent again.
        sleep: Waits so many seconds.

    Raises:
        UsageError: no address, or none that can be called.
        MissingExtra: httpx2 is not installed.
    """

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
            raise UsageError("the token holds characters that no token has", fix="copy it again")
        headers = {"user-agent": "karat", "accept": "application/json"}
        if secret.strip():
            headers["authorization"] = f"Bearer {secret.strip()}"
        self.retries, self.sleep = retries, sleep
        self.http = httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False)

    def get(self, path: str, **params: Any) -> Any:
        """What a route answers, from JSON."""
        return self._json(self._sent("GET", path, params=params, safe=True))

    def post(self, path: str, said: Mapping[str, Any], *, safe: bool = False) -> Any:
        """What a route answers to a body of JSON; ``safe`` if it changes nothing."""
        return self._json(self._sent("POST", path, json=dict(said), safe=safe))

    def delete(self, path: str, **params: Any) -> Any:
        """What a route answers that takes something away."""
        return self._json(self._sent("DELETE", path, params=params))

    def upload(self, path: str, content: Iterable[bytes], **params: Any) -> Any:
        """What a route answers to a file."""
        kind = {"content-type": "application/octet-stream"}
        return self._json(self._sent("POST", path, params=params, content=content, headers=kind))

    def rows(self, path: str, **params: Any) -> list[dict[str, Any]]:
        """All rows of a list, page by page."""
        out: list[dict[str, Any]] = []
        page = 1
        while True:
            found = self.get(path, **params, page=page, per=1000)
            out += found["items"]
            if found["next"] is None:
                return out
            page += 1

    @contextmanager
    def download(self, path: str, **params: Any) -> Iterator[Any]:
        """A file, as an answer that is not read yet."""
        with self._named_errors():
            request = self.http.build_request("GET", self._at(path), params=_given(params))
            answer = self.http.send(request, stream=True)
            try:
                if answer.status_code != 200:
                    answer.read()
                    raise self._error(answer)
                yield answer
            finally:
                answer.close()

    def close(self) -> None:
        """Close its connections."""
        self.http.close()

    def _at(self, path: str) -> str:
        return f"{self.url}/api{path}"

    def _sent(
        self, method: str, path: str, *, params: Any = None, safe: bool = False, **how: Any
    ) -> Any:
        tries = self.retries + 1 if safe else 1
        for left in reversed(range(tries)):
            wait = 0.5 * 2.0 ** (tries - 1 - left)
            try:
                with self._named_errors():
                    answer = self.http.request(
                        method, self._at(path), params=_given(params or {}), **how
                    )
            except _NoAnswer as error:
                if not left or not error.again:
                    raise
            else:
                if answer.status_code < 300:
                    return answer
                if not left or answer.status_code not in _AGAIN:
                    raise self._error(answer)
                after = answer.headers.get("retry-after", "")
                wait = float(after[:6]) if after.isascii() and after.isdigit() else wait
            self.sleep(min(wait, _LONGEST_WAIT))
        raise AssertionError  # pragma: no cover - the last try returns or raises

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Let what goes wrong on the way say which host did not answer."""
        host = urlsplit(self.url).netloc
        try:
            yield
        except self._httpx.TimeoutException:
            raise _NoAnswer(f"{host} did not answer in time", "give a longer timeout=") from None
        except self._httpx.InvalidURL as error:
            raise UsageError(f"no address can be made of this: {error}") from None
        except self._httpx.TransportError as error:
            kind = str(error).partition("\n")[0] or type(error).__name__
            raise _NoAnswer(f"{host} does not answer: {kind}", f"is {URL} right?") from None
        except self._httpx.HTTPError as error:
            raise _NoAnswer(
                f"the answer of {host} cannot be read ({type(error).__name__})", None
            ) from None

    def _json(self, answer: Any) -> Any:
        try:
            return answer.json()
        except (ValueError, RecursionError):
            raise self._strange(answer) from None

    def _error(self, answer: Any) -> KaratError:
        """The error of an answer, in the server's words."""
        if 300 <= answer.status_code < 400:
            to = urlsplit(answer.headers.get("location", "")).netloc
            what = f"{urlsplit(self.url).netloc} sends elsewhere{f', to {to}' if to else ''}"
            return UsageError(what, fix="give the address it sends to, with https perhaps")
        try:
            said = answer.json()["error"]
            code, message = str(said["code"]), str(said["message"])
            where, nearest, fix = said.get("where") or {}, said.get("nearest") or (), said["fix"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return self._strange(answer)
        if code == "input":
            names = ("file", "line", "query", "doc_id")
            return InputError(message, fix=fix, **{n: where[n] for n in names if n in where})
        if code in {"error", "missing_extra"}:
            return KaratError(message + (f"\n  fix: {fix}" if fix else ""))
        return UsageError(message, nearest=nearest, fix=fix or _HINTS.get(code))

    def _strange(self, answer: Any) -> KaratError:
        host = urlsplit(self.url).netloc
        return KaratError(
            f"{host} answered {answer.status_code}, and not as karat does"
            f"\n  fix: is {URL} right? It is where karat is served, a path included"
        )


class _NoAnswer(KaratError):
    """Nothing came back; it may be tried again, if the request was safe."""

    again = True

    def __init__(self, what: str, fix: str | None) -> None:
        super().__init__(what + (f"\n  fix: {fix}" if fix else ""))


def pieces(stream: Any) -> Iterator[bytes]:
    """A file, a megabyte at a time."""
    while held := stream.read(_CHUNK):
        yield held


@contextmanager
def sent(given: str | Path | tuple[str, bytes]) -> Iterator[tuple[str, BinaryIO]]:
    """The name of what is sent, and the stream it comes from.

    Raises:
        InputError: a file cannot be read.
    """
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
    """The text of a file.

    Raises:
        InputError: it cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("it is not UTF-8", file=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=str(path)) from None


def save(answer: Any, path: Path) -> None:
    """A download, beside its place first, so that no file is ever half-written.

    Raises:
        InputError: it cannot be written.
    """
    part = path.with_name(f".{path.name[:80]}.part")
    try:
        with part.open("wb") as out:
            for chunk in answer.iter_bytes():
                out.write(chunk)
        part.replace(path)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without those that nobody gave."""
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
        what = f"{url.strip()!r} is no address" if url.strip() else "no address of a karat is given"
        raise UsageError(what, fix=fix)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError("the address is that of karat alone: no password, no query", fix=fix)
    return url.strip().rstrip("/").removesuffix("/api")
