"""Webhooks: events posted as JSON, signed, with retries."""

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
from unicodedata import bidirectional
from urllib.parse import urlsplit

from karat.errors import UsageError
from karat.tables.workspace import WebhookForm

SIGNATURE = "X-Karat-Signature-256"
"""``sha256=`` and the HMAC-SHA256 of the body, in hexadecimal."""
DELIVERY = "X-Karat-Delivery"
"""Equal for all tries of one event, so that receivers can ignore duplicates."""
SECRET = "KARAT_WEBHOOK_SECRET"  # noqa: S105 - a name, not a secret
"""The environment variable from which the command line reads the secret."""

TRIES = 4
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds
# Classes of characters that embed text or override its direction, by the Unicode bidi algorithm.
_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_MOST_LINES, _LONGEST_LINE = 20, 2_900  # blocks of a message of Slack, and characters of one
_AGAIN = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome of an event."""

    delivered: bool  # whether the receiver accepted it (status 2xx)
    status: int | None  # the last HTTP status; None without a response
    tries: int  # how often it was sent
    # Why it was not delivered, or empty. Names only the host, as the rest of a URL may contain a
    # secret.
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
    """Post an event as JSON; a failed delivery is an outcome, not an error.

    It is retried after a broken connection, a timeout, 408, 425, 429, 500, 502, 503 and 504, after
    0.5 seconds and then twice as long each time, or as ``Retry-After`` requests (at most 30
    seconds): four tries end within 130 seconds. Redirects are not followed, and the body of the
    response is not read.

    Args:
        url: Begins with ``https://`` or ``http://``.
        event: JSON content.
        secret: Signs the body, in the header ``X-Karat-Signature-256: sha256=<hex of
            HMAC-SHA256>``; None or empty for no signature.
        timeout: Seconds per try in total, however slow the response.
        tries: Maximum number of tries, at least 1.
        sleep: Waits for a number of seconds.

    Raises:
        UsageError: the URL is invalid.
    """
    import tenacity

    checked(url)
    text = json.dumps(event, ensure_ascii=False, allow_nan=False)
    body = text.encode("utf-8", "replace")  # file names may be invalid text
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
    count = patient.statistics.get("attempt_number", 1)
    if answer.status is not None and 200 <= answer.status < 300:
        return Delivery(True, answer.status, count)
    return Delivery(False, answer.status, count, f"{urlsplit(url).hostname}: {answer.reason}")


def formed(event: Mapping[str, Any], form: WebhookForm) -> Mapping[str, Any]:
    """An event in a format.

    As a message for an incoming webhook of Slack, and of tools that accept the same: ``text``, and
    as ``blocks`` its ``lines`` and what they are of (docs.slack.dev/reference/block-kit/blocks).
    """
    if form == "json":
        return event
    lines = [_mrkdwn(line)[:_LONGEST_LINE] for line in event.get("lines", [event["text"]])]
    shown = lines if len(lines) <= _MOST_LINES else lines[: _MOST_LINES - 1]
    if lines[len(shown) :]:
        shown = [*shown, f"and {len(lines) - len(shown):,} more"]
    about = f"{event['event']} · {event['time']} · karat {event['karat']}"
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": line}} for line in shown
    ]
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": _mrkdwn(about)}]})
    return {"text": _mrkdwn(event["text"]), "blocks": blocks}


def _mrkdwn(text: str) -> str:
    """A text for Slack, without links or mentions of its own, or characters that turn others."""
    turning = {c for c in text if bidirectional(c) in _TURNING}
    text = text.translate({ord(c): "\N{REPLACEMENT CHARACTER}" for c in turning})
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sign(body: bytes, secret: str) -> str:
    """The signature of a body.

    Source: RFC 2104, with SHA-256. Compare with ``hmac.compare_digest``.
    """
    key = secret.encode("utf-8", "surrogateescape")  # the exact bytes of the environment
    return f"sha256={hmac.new(key, body, hashlib.sha256).hexdigest()}"


def checked(url: str) -> None:
    """Check a URL before there is an event to post."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        fine = False
    if not fine or not url.isascii() or any(c <= " " or c == "\x7f" for c in url):
        raise UsageError("invalid webhook URL", fix="https://HOST/PATH, or http://…")
    if "@" in parts.netloc:
        raise UsageError(
            "the webhook URL may not include a password",
            fix=f"sign with {SECRET}, or put a token into the path",
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    """The outcome of one try."""

    status: int | None
    reason: str
    again: bool
    after: float | None = None


class _Straight(urllib.request.HTTPRedirectHandler):
    """Does not follow or check redirects: they are returned as responses."""

    def http_error_302(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
    ) -> None:
        """Leave the response to the error handler."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _in_time(request: urllib.request.Request, timeout: float) -> _Answer:
    """One try with a total time limit; sockets limit only each read."""
    answers: list[_Answer] = []
    sending = threading.Thread(target=lambda: answers.append(_once(request, timeout)), daemon=True)
    sending.start()
    sending.join(timeout)
    return answers[0] if answers else _Answer(None, f"no response within {timeout:g} s", True)


def _once(request: urllib.request.Request, timeout: float) -> _Answer:
    opener = urllib.request.build_opener(_Straight)
    try:
        with opener.open(request, timeout=timeout) as response:
            return _Answer(response.status, "", False)
    except urllib.error.HTTPError as error:
        with error:
            return _refused(error)
    except urllib.error.URLError as error:
        # An invalid certificate will not become valid.
        again = not isinstance(error.reason, ssl.SSLCertVerificationError)
        return _Answer(None, f"no response ({error.reason})", again)
    except (OSError, ValueError, http.client.HTTPException) as error:
        # Not its message, which may contain sent data.
        kind = "time out" if isinstance(error, TimeoutError) else type(error).__name__
        return _Answer(None, f"no response ({kind})", not isinstance(error, ValueError))


def _refused(error: urllib.error.HTTPError) -> _Answer:
    if 300 <= error.code < 400:
        what = f"status {error.code}; redirects are not followed"
        to = _host(error.headers.get("Location") or "")
        return _Answer(error.code, f"{what} (to {to})" if to else what, False)
    reason = http.client.responses.get(error.code, "")
    return _Answer(
        error.code,
        f"status {error.code} {reason}".rstrip(),
        error.code in _AGAIN,
        _asked(error.headers.get("Retry-After") or ""),
    )


def _host(location: str) -> str | None:
    try:
        return urlsplit(location).hostname
    except ValueError:
        return None


def _asked(after: str) -> float | None:
    """Seconds of ``Retry-After``, from a number or date; None if invalid."""
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
