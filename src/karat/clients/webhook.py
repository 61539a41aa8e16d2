"""Webhooks: an event posted as JSON, signed, and tried again."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import IO, Any
from urllib.parse import urlsplit

from karat.errors import UsageError

SIGNATURE = "X-Karat-Signature-256"
"""``sha256=`` and the HMAC-SHA256 of the body, in hexadecimal."""
DELIVERY = "X-Karat-Delivery"
"""The same for every try of one event, so that it can be taken once."""
SECRET = "KARAT_WEBHOOK_SECRET"  # noqa: S105 - where it stands, not what it is
"""The environment variable that the command line reads the secret from."""

TRIES = 4
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds
_AGAIN = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of an event.

    Attributes:
        delivered: Whether the other side took it (a status of 2xx).
        status: The last HTTP status; None if there was no answer.
        tries: How often it was sent.
        reason: Why it was not delivered; empty if it was. Names the host only, as the rest of an
            address can hold a secret.
    """

    delivered: bool
    status: int | None
    tries: int
    reason: str = ""


def post(
    url: str,
    event: Mapping[str, Any],
    *,
    secret: str | None = None,
    timeout: float = 10.0,
    tries: int = TRIES,
    sleep: Callable[[float], None] = time.sleep,
) -> Delivery:
    """Post an event as JSON. That it does not arrive is an outcome, not an error.

    It is sent again after a broken connection, a timeout, 408, 425, 429, and what the other side
    failed at (500, 502, 503, 504), after 0.5 seconds and up, or as ``Retry-After`` asks (30 seconds
    at most): four tries end within 130 seconds. No redirect is followed: the event goes where it
    was sent, or nowhere. What is answered besides the status is not read.

    Args:
        url: Begins with ``https://`` or ``http://``.
        event: What JSON can hold.
        secret: Signs the body, as header ``X-Karat-Signature-256: sha256=<hex of HMAC-SHA256>``;
            None or empty for no signature.
        timeout: Seconds that a try may take in all, however slowly the answer drips in.
        tries: Most tries, 1 or more.
        sleep: Waits so many seconds.

    Raises:
        UsageError: the address is none that can be posted to.
    """
    import tenacity

    checked(url)
    text = json.dumps(event, ensure_ascii=False, allow_nan=False)
    body = text.encode("utf-8", "replace")  # names of files can be no text at all
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "karat",
        DELIVERY: hashlib.sha256(body).hexdigest()[:32],
    }
    if secret:
        headers[SIGNATURE] = sign(body, secret)
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 - checked
    patient = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(tries),
        wait=_wait,
        retry=tenacity.retry_if_result(lambda answer: answer.again),
        retry_error_callback=lambda state: state.outcome.result() if state.outcome else None,
        sleep=sleep,
    )
    answer: _Answer = patient(_in_time, request, timeout)
    made = patient.statistics.get("attempt_number", 1)
    if answer.status is not None and 200 <= answer.status < 300:
        return Delivery(True, answer.status, made)
    return Delivery(False, answer.status, made, f"{urlsplit(url).hostname}: {answer.reason}")


def sign(body: bytes, secret: str) -> str:
    """The signature of a body, for who sends it and who checks it.

    Source: RFC 2104, with SHA-256. Compare with ``hmac.compare_digest``.
    """
    key = secret.encode("utf-8", "surrogateescape")  # the very bytes of the environment
    return f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"


def checked(url: str) -> None:
    """Refuse what cannot be posted to, before there is anything to post.

    Raises:
        UsageError: not http or https, no host, a port that is none, a password, an odd character.
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not url.isascii() or any(c <= " " or c == "\x7f" for c in url):
        raise UsageError(
            "this is no address that can be notified", fix="https://HOST/PATH, or http://…"
        )
    if "@" in parts.netloc:
        raise UsageError(
            "an address with a password in it is not sent to",
            fix=f"sign with {SECRET}, or put a token into the path",
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came of one try."""

    status: int | None
    reason: str
    again: bool
    after: float | None = None


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, and does not look at where it would lead: the answer stays an answer."""

    def http_error_302(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
    ) -> None:
        """Leave it to the handler of errors."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _in_time(request: urllib.request.Request, timeout: float) -> _Answer:
    """One try, given up after the time: sockets bound each read, and so no answer of many."""
    answers: list[_Answer] = []
    sending = threading.Thread(target=lambda: answers.append(_once(request, timeout)), daemon=True)
    sending.start()
    sending.join(timeout)
    return answers[0] if answers else _Answer(None, f"no answer within {timeout:g} s", True)


def _once(request: urllib.request.Request, timeout: float) -> _Answer:
    opener = urllib.request.build_opener(_Straight)
    try:
        with opener.open(request, timeout=timeout) as response:
            return _Answer(response.status, "", False)
    except urllib.error.HTTPError as error:
        with error:
            return _refused(error)
    except urllib.error.URLError as error:
        # A certificate that is wrong now is wrong in a second.
        again = not isinstance(error.reason, ssl.SSLCertVerificationError)
        return _Answer(None, f"no answer ({error.reason})", again)
    except (OSError, ValueError, http.client.HTTPException) as error:
        # Not its text: that can hold whatever was sent.
        kind = "time out" if isinstance(error, TimeoutError) else type(error).__name__
        return _Answer(None, f"no answer ({kind})", not isinstance(error, ValueError))


def _refused(error: urllib.error.HTTPError) -> _Answer:
    if 300 <= error.code < 400:
        what = f"it answered {error.code}, and redirects are not followed"
        to = _host(error.headers.get("Location") or "")
        return _Answer(error.code, f"{what} (to {to})" if to else what, False)
    reason = http.client.responses.get(error.code, "")
    return _Answer(
        error.code,
        f"it answered {error.code} {reason}".rstrip(),
        error.code in _AGAIN,
        _asked(error.headers.get("Retry-After") or ""),
    )


def _host(location: str) -> str | None:
    try:
        return urlsplit(location).hostname
    except ValueError:
        return None


def _asked(after: str) -> float | None:
    """Seconds that ``Retry-After`` asks for, as a number or a date; None if it says neither."""
    if after.isascii() and after.isdigit():
        return float(after[:9])
    try:
        return parsedate_to_datetime(after).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return None


def _wait(state: Any) -> float:
    answer: _Answer = state.outcome.result()
    if answer.after is not None:
        return min(max(answer.after, _FIRST_WAIT), _LONGEST_WAIT)
    doubled: float = _FIRST_WAIT * 2.0 ** (state.attempt_number - 1)
    return min(doubled, _LONGEST_WAIT)
