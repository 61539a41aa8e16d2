"""Serving: names it answers to, ports, the first owner's link, and processes that end in order."""

from __future__ import annotations

import errno
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from karat.errors import UsageError
from karat.store.sql import people
from karat.web import server
from karat.web.framework.settings import Settings
from karat.web.server import (
    LOCAL,
    Serving,
    base_path,
    first_link,
    first_owner,
    free,
    host_names,
    is_local,
    listen,
    proxy_addresses,
    taken_by,
    unreached,
)
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.workspace.workspace import open_workspace

NOW = 1_800_000_000_000_000
RUN = "import sys; from karat.cli.main import main; sys.argv[0] = 'karat'; main()"


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.7", False),
        ("karat.example.org", False),
        ("localhost.evil.example", False),
    ],
)
def test_which_addresses_nobody_else_reaches(host: str, *, local: bool) -> None:
    assert is_local(host) is local


def test_it_answers_to_this_machine_and_to_the_names_it_was_given() -> None:
    assert host_names("127.0.0.1", [], accounts=False) == LOCAL
    assert host_names("0.0.0.0", [], accounts=True) == ()
    names = host_names("10.0.0.7", ["Karat.Example.org"], accounts=True)
    assert names == ("karat.example.org", *LOCAL, "10.0.0.7")
    assert host_names("::1", [], accounts=False) == LOCAL
    # As browsers send them, however they were typed.
    typed = ["192.168.1.7", "FD00:0:0:0:0:0:0:2", "[fd00::0:3]", "karat.example.org."]
    plain = ("192.168.1.7", "[fd00::2]", "[fd00::3]", "karat.example.org")
    assert host_names("0.0.0.0", typed, accounts=True) == (*plain, *LOCAL)
    assert host_names("0:0:0:0:0:0:0:1", [], accounts=False) == LOCAL


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("https://karat.example.org/k", "--name karat.example.org"),
        ("karat.example.org:8000", "--name karat.example.org"),
        ("two words", "--name example.org"),
        ("", "--name example.org"),
        ("http://[", "--name example.org"),
        ("192.168.001.007", "--name 192.168.1.7"),
        ("10.1", "--name 192.168.1.7"),
        ("[1:2]", "--name 192.168.1.7"),
    ],
)
def test_what_is_no_name_alone_is_refused(name: str, fix: str) -> None:
    with pytest.raises(UsageError) as refused:
        host_names("0.0.0.0", [name], accounts=True)
    assert refused.value.fix == fix


def test_base_paths() -> None:
    said = ("", "/", "karat", "/karat/", "/tools/karat")
    assert [base_path(each) for each in said] == ["", "", "/karat", "/karat", "/tools/karat"]
    for bad in ("/a b", "/a?b", "/../x", "https://karat.example.org", "/a//b"):
        with pytest.raises(UsageError, match="no path of an address"):
            base_path(bad)


def test_proxies_are_addresses() -> None:
    assert proxy_addresses(["127.0.0.1", "10.0.0.0/8", "::1", "*"])[2:] == ("::1", "*")
    with pytest.raises(UsageError, match="no address of a proxy"):
        proxy_addresses(["proxy.example.org"])


def test_addresses_for_browsers(tmp_path: Path) -> None:
    local = Settings(tmp_path, accounts=False, hosts=LOCAL, base="/k")
    assert Serving(local, "::1", 8001).address == "http://[::1]:8001/k"
    team = Settings(tmp_path, hosts=("karat.example.org", *LOCAL), secure=True)
    assert Serving(team, "127.0.0.1").address == "https://karat.example.org"
    plain = Settings(tmp_path, hosts=("karat.example.org", *LOCAL))
    assert Serving(plain, "0.0.0.0", 80).address == "http://karat.example.org:80"
    anywhere = Serving(Settings(tmp_path), "0.0.0.0", 8000).address
    assert anywhere == f"http://{socket.gethostname()}:8000"


def test_a_name_by_which_nobody_comes_is_known(tmp_path: Path) -> None:
    named = Settings(tmp_path, hosts=("192.168.1.7", *LOCAL))
    assert unreached(Serving(named))
    assert not unreached(Serving(named, "0.0.0.0"))
    assert not unreached(Serving(named, proxies=("127.0.0.1",)))
    assert not unreached(Serving(Settings(tmp_path, hosts=named.hosts, secure=True)))
    assert not unreached(Serving(Settings(tmp_path, accounts=False, hosts=LOCAL)))
    assert not unreached(Serving(Settings(tmp_path, hosts=LOCAL)))


def test_a_port_that_is_taken_is_said_with_who_has_it_and_one_that_is_free() -> None:
    with listen("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        assert free("127.0.0.1", port) == 0
        with pytest.raises(UsageError, match=f"port {port} is taken") as refused:
            listen("127.0.0.1", port)
        found = re.fullmatch(r"--port (\d+), which is free", refused.value.fix or "")
        assert found is not None
        listen("127.0.0.1", int(found[1])).close()
        if Path("/proc/net/tcp").exists():
            assert (taken_by(port) or "").endswith(f"(process {os.getpid()})")
            assert str(os.getpid()) in refused.value.what
    assert free("127.0.0.1", port) == port
    assert taken_by(port) is None


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "kept for the system"),
        (errno.EADDRNOTAVAIL, "no address of this machine"),
        (errno.ENOBUFS, "nothing can listen"),
    ],
)
def test_other_reasons_are_said(number: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(server, "_bound", refuse)
    with pytest.raises(UsageError, match=said):
        listen("127.0.0.1", 80)


def test_an_address_that_is_none_is_said() -> None:
    with pytest.raises(UsageError, match="there is no address"):
        listen("no such host.invalid", 8000)


def test_the_first_owner_comes_by_a_link_that_is_printed_once(workspace: Path) -> None:
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        accounts = Accounts(opened.store, lambda: NOW)
        link = first_link(accounts, "anna")
        assert link is not None
        assert first_link(accounts, "anna") is None  # a new one would end the first
        waiting = first_owner(accounts)
        assert waiting is not None
        assert (waiting.name, waiting.renews) == ("anna", False)
        person = accounts.accept(link.removeprefix("/invited/"), "a long password, truly")
        assert (person.name, person.role) == ("anna", "owner")
        assert first_link(accounts, "ben") is None
        accounts.invite("ben", "owner")
        assert first_owner(accounts) is None, "anna can sign in"


def test_who_served_on_this_machine_alone_gets_a_password(workspace: Path) -> None:
    moments = iter(range(NOW, NOW + 100))
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        accounts = Accounts(opened.store, lambda: next(moments))
        accounts.local("anna")
        link = first_link(accounts, "ben")
        assert link is not None
        assert accounts.accept(link.removeprefix("/invited/"), "a long password").name == "anna"
        with opened.store.read() as c:
            assert people.find(c, "ben") is None


# The command, in processes of its own.


@contextmanager
def served(workspace: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """``karat serve`` once it answers: its process, port, and what it printed."""
    environment = {**os.environ, "KARAT_RATER": "anna"}
    environment.pop("KARAT_STORE", None)
    environment.pop("DISPLAY", None)
    log = workspace.parent / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, "serve", "-w", str(workspace), "--port", "0", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if "Ctrl-C" in line:
                break
        port = int(re.findall(r":(\d+)", said)[0]) if said else 0
        assert port, log.read_text()
        assert asked(port, "/healthz")[0] == 200, log.read_text()
        yield process, port, said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def asked(port: int, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        line.request("GET", path, headers=headers)
        answer = line.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        line.close()


def gone(port: int) -> bool:
    """Whether nobody listens any more, within ten seconds."""
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return True
        threading.Event().wait(0.1)
    return False


posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@posix
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_ends_in_order(workspace: Path, workers: str, how: signal.Signals) -> None:
    with served(workspace, "--workers", workers, "--log", "json") as (process, port, said):
        link = re.findall(r"http://127\.0\.0\.1:\d+(/link/\S+)", said)[0]
        status, headers = asked(port, link)
        assert status == 303
        cookie = headers["set-cookie"].partition(";")[0]
        assert asked(port, "/golden", cookie=cookie)[0] == 200
        assert asked(port, link)[0] == 404  # it works once
        assert asked(port, "/", host="evil.example")[0] == 421
        assert "server" not in headers
        began = time.monotonic()
        if how is signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does: to all of its processes
        else:
            process.send_signal(how)
        assert process.wait(10) == 0
        assert time.monotonic() - began < 10
        assert gone(port)
    log = (workspace.parent / "log").read_text()
    assert "Traceback" not in log
    assert link.removeprefix("/link/") not in log
    assert '"path": "/link/\\u2026"' in log


@posix
@pytest.mark.parametrize(
    ("words", "address"), [((), "127.0.0.1"), (("--proxy", "127.0.0.1"), "10.9.9.9")]
)
def test_only_a_proxy_that_was_named_says_who_asks(
    workspace: Path, words: tuple[str, ...], address: str
) -> None:
    with served(workspace, "--log", "json", *words) as (process, port, _):
        asked(port, "/sign-in", **{"X-Forwarded-For": "10.9.9.9"})
        process.terminate()
        process.wait(10)  # a request is logged when it was answered
    lines = (workspace.parent / "log").read_text().splitlines()
    log = [json.loads(line) for line in lines if line.startswith("{")]
    assert [each["address"] for each in log if each.get("path") == "/sign-in"] == [address]


@posix
def test_half_requests_end_and_keep_nobody_out(workspace: Path) -> None:
    words = ("--timeout", "1", "--connections", "8")
    with served(workspace, *words) as (_, port, _said), ExitStack() as lines:
        half = [
            lines.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            for _ in range(40)
        ]
        for each in half:
            with suppress(OSError):  # those that came first made room already
                each.sendall(b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\nx-")
        assert asked(port, "/healthz")[0] == 200
        assert half[-1].recv(100).startswith(b"HTTP/1.1 408 ")


@posix
def test_a_worker_that_dies_is_followed_by_another_and_all_end_with_the_first(
    workspace: Path,
) -> None:
    with served(workspace, "--workers", "2") as (process, port, _):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("needs /proc")
        named = {each for each in map(int, children.read_text().split()) if is_worker(each)}
        assert len(named) == 2
        os.kill(min(named), signal.SIGKILL)
        for _ in range(100):
            now = {each for each in map(int, children.read_text().split()) if is_worker(each)}
            if len(now) == 2 and now != named:
                break
            threading.Event().wait(0.1)
        assert len(now) == 2
        assert asked(port, "/healthz")[0] == 200
        process.kill()  # kill -9 of the first alone: no worker keeps the port
        process.wait()
        assert gone(port)


def is_worker(number: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return False


@posix
def test_a_request_under_way_ends_first(workspace: Path) -> None:
    """An upload whose body is still coming when SIGTERM comes is answered."""
    with served(workspace) as (process, port, _):
        line = socket.create_connection(("127.0.0.1", port), 30)
        body = b"name=anna&password=x"
        line.sendall(
            b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            b"content-type: application/x-www-form-urlencoded\r\n"
            b"content-length: %d\r\n\r\n" % len(body) + body[:5]
        )
        threading.Event().wait(0.2)
        process.send_signal(signal.SIGTERM)
        threading.Event().wait(0.2)
        line.sendall(body[5:])
        said = b""
        while data := line.recv(65536):
            said += data
        line.close()
        assert said.startswith(b"HTTP/1.1 404")  # on this machine alone there are no accounts
        assert process.wait(10) == 0


def test_where_the_app_cannot_start_it_ends_with_4(workspace: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from karat.web.server import Serving, listen, run\n"
        "from karat.web.framework.settings import Settings\n"
        "where = Serving(Settings(Path(sys.argv[1])), port=0, workers=int(sys.argv[2]))\n"
        "if __name__ == '__main__':\n"
        "    sys.exit(run(where, listen('127.0.0.1', 0)))\n"
    )
    script = workspace.parent / "start.py"
    script.write_text(program)
    for workers in ("1", "2"):
        done = subprocess.run(
            [sys.executable, str(script), str(workspace.parent / "none"), workers],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 4, done.stderr
        assert "is not in a workspace" in done.stderr
