"""Serving: a place to listen, who comes in first, worker processes, and an orderly end."""

from __future__ import annotations

import errno
import ipaddress
import logging
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from karat.errors import KaratError, UsageError
from karat.store.sql.people import Invitation
from karat.tables.accounts.people import Person
from karat.web.framework.connections import MOST, Limits, bounded, most_open
from karat.web.framework.logs import log_config
from karat.web.framework.settings import Settings, plain_host
from karat.web.framework.uploads import own_place
from karat.workflows.accounts.accounts import Accounts

LOG = logging.getLogger("karat.web")
LOCAL = ("127.0.0.1", "localhost", "[::1]")
"""What this machine calls itself: another name in a request is that of a page that lies."""
GRACE_S = 8
"""How long requests under way may take to end, seconds."""
_LAST_S = 9.5  # after which the process ends all the same
_AGAIN_S = 1.0  # before another worker takes the place of one that died
_TRIED = 100  # ports that are looked at for a free one
_LISTENS = "0A"  # a socket's state in /proc/net/tcp
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\]")
_NUMBERS = re.compile(r"[0-9.]+|\[.*\]")
_BASE = re.compile(r"(/[\w.~-]+)*")


@dataclass(frozen=True)
class Serving:
    """How the server runs.

    Attributes:
        settings: What the app is told.
        host: Address it listens on.
        port: Port it listens on.
        workers: Processes that answer.
        proxies: Addresses of proxies whose word on who asks is believed; ``*`` for any.
        log: ``text`` or ``json``.
        connections: Open connections of one address at most, but for proxies.
    """

    settings: Settings
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    proxies: tuple[str, ...] = ()
    log: str = "text"
    connections: int = MOST

    @property
    def address(self) -> str:
        """Where a browser finds it, as far as is known here; without a slash at the end."""
        settings = self.settings
        names = [name for name in settings.hosts if name not in LOCAL]
        behind = bool(self.proxies) or settings.secure
        name = names[0] if settings.accounts and names else _shown(self.host)
        port = "" if behind and names else f":{self.port}"
        return f"{'https' if settings.secure else 'http'}://{name}{port}{settings.base}"


def is_local(host: str) -> bool:
    """Whether nobody but this machine reaches an address."""
    return host == "localhost" or (
        _is_address(host) and ipaddress.ip_address(host.strip("[]")).is_loopback
    )


def unreached(serving: Serving) -> bool:
    """Whether nobody comes by the name it was given: it listens to this machine, and no proxy."""
    named = any(name not in LOCAL for name in serving.settings.hosts)
    behind = bool(serving.proxies) or serving.settings.secure
    return serving.settings.accounts and named and not behind and is_local(serving.host)


def host_names(host: str, names: Sequence[str], *, accounts: bool) -> tuple[str, ...]:
    """Names that the app answers to: those given, and this machine's own; empty for any.

    Args:
        host: Address that it listens on.
        names: Given by whoever starts it.
        accounts: Whether people sign in with accounts; else nothing but ``LOCAL`` will do.

    Raises:
        UsageError: a name is an address of a page, holds a port, or is no name.
    """
    given = [_name(each) for each in names]
    if accounts and not given:
        return ()  # nobody said how it is called; a session's cookie is good for one name alone
    own = [] if host in {"0.0.0.0", "::"} else [plain_host(_shown(host))]  # noqa: S104 - compared
    return tuple(dict.fromkeys([*given, *LOCAL, *own]))


def base_path(text: str) -> str:
    """A path under which a proxy serves the app: begins with a slash, and ends without one.

    Raises:
        UsageError: it is no such path.
    """
    base = "/" + text.strip("/") if text.strip("/") else ""
    if not _BASE.fullmatch(base) or any(part in {".", ".."} for part in base.split("/")):
        raise UsageError(f"{text!r} is no path of an address", fix="--base-path /karat")
    return base


def proxy_addresses(given: Sequence[str]) -> tuple[str, ...]:
    """Addresses, or networks as ``10.0.0.0/8``, of proxies; ``*`` for whoever reaches the port.

    Raises:
        UsageError: one is a name: it would be compared with addresses, and never be right.
    """
    for each in given:
        try:
            if each != "*":
                ipaddress.ip_network(each)
        except ValueError:
            fix = "--proxy 127.0.0.1, where it connects from"
            raise UsageError(f"{each!r} is no address of a proxy", fix=fix) from None
    return tuple(given)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, so that whoever comes early waits rather than is turned away.

    Args:
        host: Address of this machine, or a name of one.
        port: 0 for any that is free.

    Raises:
        UsageError: the port is taken (by whom, if that can be told, and which one is free), may
            not be had, or the address is none of this machine's.
    """
    try:
        family, *_, place = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror:
        raise UsageError(
            f"there is no address {host!r}", fix="--host 127.0.0.1, or an address of this machine"
        ) from None
    try:
        return _bound(family, place)
    except OSError as error:
        raise _unbound(error, family, place) from None


def free(host: str, port: int) -> int:
    """A port if it is free, else 0, for any that is."""
    try:
        listen(host, port).close()
    except UsageError:
        return 0
    return port


def taken_by(port: int) -> str | None:
    """Which process listens on a port: name and number; None if that cannot be told (Linux can)."""
    inodes = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*") if inodes else ():
        try:
            if any(str(each.readlink()) in inodes for each in (process / "fd").iterdir()):
                called = (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"{called} (process {process.name})"
        except OSError:
            continue  # somebody else's, or it has ended
    return None


def first_link(accounts: Accounts, owner: str) -> str | None:
    """The path of a link for the first owner of a server with accounts, as ``/invited/…``.

    None where an owner can sign in, or was invited and may still come: a new link would end theirs.

    Args:
        accounts: Of the store.
        owner: Whom to invite where there is no owner at all.
    """
    owners = _owners(accounts)
    if any(map(accounts.has_password, owners)):
        return None
    if first_owner(accounts) is not None:
        return None
    # Who served on this machine alone is an owner without a password.
    made = accounts.renew(owners[0].name) if owners else accounts.invite(owner, "owner")
    return f"/invited/{made.text}"


def first_owner(accounts: Accounts) -> Invitation | None:
    """The invitation by which an owner is to come; None where one can sign in, or none is there."""
    if any(map(accounts.has_password, _owners(accounts))):
        return None
    return next((each for each in accounts.invitations() if each.role == "owner"), None)


def _owners(accounts: Accounts) -> list[Person]:
    return [
        row.person
        for row in accounts.everybody()
        if row.person.role == "owner" and row.disabled_us is None
    ]


def run(serving: Serving, listening: socket.socket) -> int:
    """Serve until SIGTERM or SIGINT; requests under way end first.

    Args:
        serving: How.
        listening: Of ``listen``.

    Returns:
        The exit code: 0, or 4 if the app could not start.
    """
    os.environ.update(serving.settings.to_environment())
    if serving.workers > 1:
        return _workers(serving, listening)
    return _one(serving, listening)


def _one(serving: Serving, listening: socket.socket) -> int:
    server = _server(serving)

    def end() -> None:
        server.should_exit = True
        late = threading.Timer(_LAST_S, os._exit, args=(0,))
        late.daemon = True  # a request that does not end must not keep the process
        late.start()

    _on_signal(end)  # uvicorn puts its own in their place, and at its end sends them on to these
    _after_parent(end)
    try:
        with own_place():
            server.run([listening])
    except SystemExit:  # uvicorn has said why
        return 4
    except KaratError as error:
        LOG.error("cannot start: %s", error)
        return 4
    return 0


def _server(serving: Serving) -> uvicorn.Server:
    patience_s = serving.settings.patience_s
    limits = Limits(patience_s, most_open(serving.connections), serving.proxies)
    how = uvicorn.Config(
        "karat.web.app:create_app",
        factory=True,
        http=bounded(limits),
        log_config=log_config(serving.log),
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        proxy_headers=bool(serving.proxies),
        forwarded_allow_ips=list(serving.proxies),
        timeout_graceful_shutdown=GRACE_S,
        workers=1,
    )
    return uvicorn.Server(how)


def _on_signal(act: Callable[[], None]) -> None:
    def heard(_signal: int, _frame: FrameType | None) -> None:
        act()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, heard)


def _after_parent(end: Callable[[], None]) -> None:
    """End a worker with the process that started it, however that one ended."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        end()

    threading.Thread(target=watch, daemon=True).start()


def _work(serving: Serving, listening: socket.socket) -> None:
    code = _one(serving, listening)
    raise SystemExit(STARTUP_FAILURE if code else 0)


def _workers(serving: Serving, listening: socket.socket) -> int:
    """Keep so many processes answering; one that dies is followed by another."""
    spawn, stopped, code = multiprocessing.get_context("spawn"), threading.Event(), 0
    _on_signal(stopped.set)

    def started() -> multiprocessing.process.BaseProcess:
        process = spawn.Process(target=_work, args=(serving, listening))
        process.start()
        return process

    workers = [started() for _ in range(serving.workers)]
    while not stopped.wait(0.2):
        for place, worker in enumerate(workers):
            if worker.is_alive():
                continue
            if worker.exitcode == STARTUP_FAILURE:  # the next one would fail as well
                code = 4
                stopped.set()
            elif not stopped.wait(_AGAIN_S):
                workers[place] = started()
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + _LAST_S
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
        if worker.is_alive():
            worker.kill()
            worker.join()
    return code


def _bound(family: int, place: tuple[object, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # a port that was just left may be had again; elsewhere it means
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # to take it from another
        made.bind(place)
        made.listen(2048)
    except BaseException:
        made.close()
        raise
    return made


def _unbound(error: OSError, family: int, place: tuple[object, ...]) -> KaratError:
    host, port, *rest = place
    if error.errno == errno.EADDRNOTAVAIL:
        fix = "--host 127.0.0.1, or an address of this machine"
        return UsageError(f"{host} is no address of this machine", fix=fix)
    if error.errno == errno.EACCES:
        fix = "--port 8000, and a proxy before it"
        return UsageError(f"port {port} is kept for the system", fix=fix)
    if error.errno != errno.EADDRINUSE:
        return UsageError(f"nothing can listen on {host}, port {port}: {error.strerror}")
    who = taken_by(int(str(port)))
    for other in range(int(str(port)) + 1, min(int(str(port)) + _TRIED, 65_536)):
        try:
            _bound(family, (host, other, *rest)).close()
        except OSError:
            continue
        by = f" by {who}" if who else ""
        return UsageError(f"port {port} is taken{by}", fix=f"--port {other}, which is free")
    return UsageError(f"port {port} is taken, and so are those behind it", fix="--port 0")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _shown(host: str) -> str:
    """An address as it stands in a URL; of one that means all of them, the machine's name."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound
        return socket.gethostname()
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _name(text: str) -> str:
    name = plain_host(text)
    if _NUMBERS.fullmatch(name) and not _is_address(name):  # browsers would read it otherwise
        raise UsageError(f"{text!r} is no address of a machine", fix="--name 192.168.1.7")
    if not _HOST.fullmatch(name):
        try:
            inside = urlsplit(name if "//" in name else f"//{name}").hostname
        except ValueError:
            inside = None
        fix = f"--name {inside}" if inside and _HOST.fullmatch(inside) else "--name example.org"
        raise UsageError(f"{text!r} is no name of a machine alone", fix=fix)
    return name
