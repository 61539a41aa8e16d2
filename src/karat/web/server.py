"""The server: listening, the first owner's link, worker processes, shutdown, and its log."""

from __future__ import annotations

import errno
import ipaddress
import json
import logging
import multiprocessing
import os
import re
import signal
import socket
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from karat.errors import KaratError, UsageError
from karat.web.framework.connections import Bounded, Limits, most_open
from karat.web.framework.settings import LOCAL, Settings, plain_host

if TYPE_CHECKING:
    from karat.web.framework.state import AppState

LOG = logging.getLogger("karat.web")
GRACE_S = 8
"""Seconds for requests under way to finish at shutdown."""
_LAST_S = 1.5  # after that, the process ends anyway
_HUNG_S = 30  # without a sign of life, a worker process is replaced
_TRIED = 100  # ports to try for a free one
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]")
_NUMBERS = re.compile(r"[0-9.]+|\[.*\]")
_BASE = re.compile(r"(/[\w.~-]+)*")
_LOGGED = ("method", "path", "status", "ms", "person", "address")
"""Fields of a request in the log, besides its time."""


@dataclass(frozen=True)
class Serving:
    """How the server runs: ``host`` and ``port`` to listen on, and ``log``: text or json."""

    settings: Settings
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    log: str = "text"

    @property
    def address(self) -> str:
        """Its URL for browsers, as far as known here; without a trailing slash."""
        settings = self.settings
        names = [name for name in settings.hosts if name not in LOCAL]
        behind = bool(settings.proxies) or settings.secure
        name = names[0] if settings.accounts and names else _url_host(self.host)
        port = "" if behind and names else f":{self.port}"
        return f"{'https' if settings.secure else 'http'}://{name}{port}{settings.base}"


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    return host == "localhost" or (
        _is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback
    )


def unreached(serving: Serving) -> bool:
    """Whether its public name cannot work: it listens locally, without a proxy in front."""
    named = any(name not in LOCAL for name in serving.settings.hosts)
    behind = bool(serving.settings.proxies) or serving.settings.secure
    return serving.settings.accounts and named and not behind and is_local(serving.host)


def host_names(host: str, names: Sequence[str], *, accounts: bool) -> tuple[str, ...]:
    """Host names to accept: those given, and this machine's own; empty for any."""
    given = [_host_name(name) for name in names]
    if accounts and not given:
        return ()  # no name is configured; a session cookie is valid for one name only
    own = [] if host in {"0.0.0.0", "::"} else [plain_host(_url_host(host))]  # noqa: S104 - compared
    return tuple(dict.fromkeys([*given, *LOCAL, *own]))


def base_path(text: str) -> str:
    """A path under which a proxy serves the app: with a leading slash, without a trailing one."""
    base = "/" + text.strip("/") if text.strip("/") else ""
    if not _BASE.fullmatch(base) or any(part in {".", ".."} for part in base.split("/")):
        raise UsageError(f"invalid base path {text!r}", fix="--base-path /karat")
    return base


def proxy_addresses(given: Sequence[str]) -> tuple[str, ...]:
    """Addresses of proxies, or networks as ``10.0.0.0/8``; ``*`` for any."""
    for proxy in given:
        try:
            if proxy != "*":
                ipaddress.ip_network(proxy)
        except ValueError:
            fix = "--proxy 127.0.0.1, the address it connects from"
            raise UsageError(
                f"the proxy {proxy!r} is not an IP address or network", fix=fix
            ) from None
    return tuple(given)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, opened before the app starts: early clients wait for it."""
    try:
        family, *_, place = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror:
        raise UsageError(
            f"cannot resolve the host {host!r}",
            fix="--host 127.0.0.1, or an address of this machine",
        ) from None
    try:
        return _bound(family, place)
    except OSError as error:
        raise _listen_error(error, family, place) from None


def free(host: str, port: int) -> int:
    """The port if it is free, else 0 for any free one."""
    try:
        listen(host, port).close()
    except UsageError:
        return 0
    return port


def run(serving: Serving, listening: socket.socket) -> int:
    """Serve on a socket of ``listen`` until SIGTERM or SIGINT, and finish requests under way.

    The exit code is 4 if the app could not start.
    """
    os.environ.update(serving.settings.to_environment())
    config = uvicorn.Config(
        f"{__name__}:app_of_process",
        factory=True,
        http=Bounded,
        log_config=log_config(serving.log),
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        proxy_headers=bool(serving.settings.proxies),
        forwarded_allow_ips=list(serving.settings.proxies),
        timeout_graceful_shutdown=GRACE_S,
        timeout_worker_healthcheck=_HUNG_S,
        workers=serving.workers,
    )
    if serving.workers > 1:
        workers = Multiprocess(config, [listening])
        workers.run()
        return 4 if any(p.exitcode == STARTUP_FAILURE for p in workers.processes) else 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn raises them again after shutdown
    try:
        uvicorn.Server(config).run([listening])
    except SystemExit:  # the reason is in the log
        return 4
    return 0


def app_of_process() -> FastAPI:
    """The app of a process, by the settings in its environment; uvicorn calls this."""
    _end_with_parent()  # before the imports, which take a second
    from karat.web.app import create_app

    settings = Settings.from_environment()
    most = most_open(settings.connections)
    Bounded.limits = Limits(settings.patience_s, most, settings.proxies)
    try:
        return create_app(settings, around=_process, during=_meanwhile)
    except KaratError as error:
        LOG.error("cannot start: %s", error)
        raise SystemExit(STARTUP_FAILURE) from None  # a new worker would fail as well


@contextmanager
def _meanwhile(site: AppState) -> Iterator[None]:
    """What goes on while the server runs."""
    from karat.web.online.rounds import watch_goes_on
    from karat.web.release.rounds import releases_go_on

    with releases_go_on(site), watch_goes_on(site):
        yield


def _end_with_parent() -> None:
    """End a worker when its parent process ends, in whatever way."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _process() -> Iterator[None]:
    """Around the life of the app: temporary files of its own, and an end in time."""
    from karat.web.framework.uploads import own_place

    with own_place():
        yield
        late = threading.Timer(_LAST_S, os._exit, args=(0,))
        late.daemon = True  # a hanging request must not keep the process alive
        late.start()


def _bound(family: int, place: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # reuse a port just closed; elsewhere it would steal one in use
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(place)
        sock.listen(2048)
    except BaseException:
        sock.close()
        raise
    return sock


def _listen_error(error: OSError, family: int, place: tuple[object, ...]) -> KaratError:
    host, port, *rest = place
    if error.errno == errno.EADDRNOTAVAIL:
        fix = "--host 127.0.0.1, or an address of this machine"
        return UsageError(f"{host} is not an address of this machine", fix=fix)
    if error.errno == errno.EACCES:
        fix = "--port 8000 behind a reverse proxy"
        return UsageError(f"permission denied for port {port} (privileged)", fix=fix)
    if error.errno != errno.EADDRINUSE:
        return UsageError(f"cannot listen on {host} port {port}: {error.strerror}")
    for other in range(int(str(port)) + 1, min(int(str(port)) + _TRIED, 65_536)):
        try:
            _bound(family, (host, other, *rest)).close()
        except OSError:
            continue
        return UsageError(f"port {port} is already in use", fix=f"--port {other}, which is free")
    return UsageError(f"port {port} and the next {_TRIED - 1} are in use", fix="--port 0")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _url_host(host: str) -> str:
    """An address as in a URL; for a wildcard address the machine's name."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return socket.gethostname()
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _host_name(text: str) -> str:
    name = plain_host(text)
    if _NUMBERS.fullmatch(name) and not _is_address(name):  # browsers would read another address
        raise UsageError(f"{text!r} is not a valid IP address", fix="--name 192.168.1.7")
    if not _HOST.fullmatch(name):
        try:
            inside = urlsplit(name if "//" in name else f"//{name}").hostname
        except ValueError:
            inside = None
        fix = f"--name {inside}" if inside and _HOST.fullmatch(inside) else "--name example.org"
        raise UsageError(f"{text!r} is not a plain host name", fix=fix)
    return name


class JsonLines(logging.Formatter):
    """One JSON object a line: ``time`` (UTC), ``level``, ``message``, and more if known.

    Requests have ``method``, ``path`` (without the query string and secrets), ``status``, ``ms``,
    ``person`` (null if not signed in) and ``address``; errors have ``error``, the number shown on
    their page, and ``trace``.
    """

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        fields |= {name: getattr(record, name) for name in _LOGGED if hasattr(record, name)}
        if hasattr(record, "error"):
            fields["error"] = record.error
        if record.exc_info:
            fields["trace"] = "".join(traceback.format_exception(*record.exc_info))
        # ASCII: Unicode line separators would split the line.
        return json.dumps(fields)


class Text(logging.Formatter):
    """One readable line; the traceback of an error follows it."""

    def format(self, record: logging.LogRecord) -> str:
        text = _printable(record.getMessage())
        if hasattr(record, "status"):
            who = "–" if record.person is None else _printable(str(record.person))  # type: ignore[attr-defined]
            text += f"  {record.ms:g} ms  {who}  {record.address}"  # type: ignore[attr-defined]
        line = f"{_time(record)} {record.levelname.lower():7} {text}"
        if record.exc_info:
            line += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return line


def log_config(form: str) -> dict[str, Any]:
    """Configuration for ``logging.config.dictConfig``, in the form ``text`` or ``json``.

    uvicorn's own access log is off, because it would have the secrets of links.
    """
    formatter = {"text": Text, "json": JsonLines}[form]
    ours = {"handlers": ["stderr"], "level": "INFO", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"ours": {"()": f"{__name__}.{formatter.__name__}"}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "ours",
                "stream": "ext://sys.stderr",
            }
        },
        "loggers": {
            "karat": ours,
            "uvicorn.error": ours | {"level": "WARNING"},
            "uvicorn.access": {"handlers": [], "level": "CRITICAL", "propagate": False},
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
    }


def _time(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _printable(text: str) -> str:
    """Text from requests, safe for a terminal and on one line."""
    return "".join(c if c.isprintable() else "?" for c in text)
