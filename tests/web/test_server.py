"""Serving: names it answers to, ports, the first owner's link, and processes that end in order."""

from __future__ import annotations

import errno
import http.client
import json
import logging
import logging.config
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.web.release_shop import begin
from uvicorn.config import STARTUP_FAILURE

from karat.errors import UsageError
from karat.store.sql import people
from karat.web import server
from karat.web.framework.settings import LOCAL, VARIABLE, Settings
from karat.web.server import (
    JsonLines,
    Serving,
    Text,
    base_path,
    free,
    host_names,
    is_local,
    listen,
    log_config,
    proxy_addresses,
    run,
    unreached,
)
from karat.workflows.accounts.accounts import Accounts
from karat.workflows.release import pipeline
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
        with pytest.raises(UsageError, match="invalid base path"):
            base_path(bad)


def test_proxies_are_addresses() -> None:
    assert proxy_addresses(["127.0.0.1", "10.0.0.0/8", "::1", "*"])[2:] == ("::1", "*")
    with pytest.raises(UsageError, match="not an IP address or network"):
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
    assert not unreached(Serving(replace(named, proxies=("127.0.0.1",))))
    assert not unreached(Serving(Settings(tmp_path, hosts=named.hosts, secure=True)))
    assert not unreached(Serving(Settings(tmp_path, accounts=False, hosts=LOCAL)))
    assert not unreached(Serving(Settings(tmp_path, hosts=LOCAL)))


def test_a_port_that_is_taken_is_said_with_one_that_is_free() -> None:
    with listen("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        assert free("127.0.0.1", port) == 0
        with pytest.raises(UsageError, match=f"port {port} is already in use") as refused:
            listen("127.0.0.1", port)
        found = re.fullmatch(r"--port (\d+), which is free", refused.value.fix or "")
        assert found is not None
        listen("127.0.0.1", int(found[1])).close()
    assert free("127.0.0.1", port) == port


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "permission denied for port"),
        (errno.EADDRNOTAVAIL, "not an address of this machine"),
        (errno.ENOBUFS, "cannot listen on"),
    ],
)
def test_other_reasons_are_said(number: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(server, "_bound", refuse)
    with pytest.raises(UsageError, match=said):
        listen("127.0.0.1", 80)


def test_an_address_that_is_none_is_said() -> None:
    with pytest.raises(UsageError, match="cannot resolve the host"):
        listen("no such host.invalid", 8000)


def test_the_first_owner_comes_by_a_link_that_is_printed_once(workspace: Path) -> None:
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        accounts = Accounts(opened.store, lambda: NOW)
        link = accounts.first_link("anna")
        assert link is not None
        assert accounts.first_link("anna") is None  # a new one would end the first
        waiting = accounts.first_owner()
        assert waiting is not None
        assert (waiting.name, waiting.renews) == ("anna", False)
        person = accounts.accept(link.removeprefix("/invited/"), "a long password, truly")
        assert (person.name, person.role) == ("anna", "owner")
        assert accounts.first_link("ben") is None
        accounts.invite("ben", "owner")
        assert accounts.first_owner() is None, "anna can sign in"


def test_who_served_on_this_machine_alone_gets_a_password(workspace: Path) -> None:
    moments = iter(range(NOW, NOW + 100))
    with open_workspace(workspace, now=NOW, environment={}) as opened:
        accounts = Accounts(opened.store, lambda: next(moments))
        accounts.local("anna")
        link = accounts.first_link("ben")
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
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        line.request("GET", path, headers=headers)
        answer = line.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        line.close()


def gone(port: int) -> bool:
    """Whether nobody listens any more, within a minute: a worker may still be starting."""
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return True
        threading.Event().wait(0.1)
    return False


posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.mark.deep  # a build asks the server in this process, below
@posix
@pytest.mark.parametrize(
    ("workers", "how"),
    [
        ("2", signal.SIGINT),
        # One worker and SIGTERM are below, without a process of their own.
        pytest.param("1", signal.SIGINT, marks=pytest.mark.deep),
        pytest.param("1", signal.SIGTERM, marks=pytest.mark.deep),
        pytest.param("2", signal.SIGTERM, marks=pytest.mark.deep),
    ],
)
def test_it_serves_and_ends_in_order(workspace: Path, workers: str, how: signal.Signals) -> None:
    with served(workspace, "--workers", workers, "--log", "json") as (process, port, said):
        link = re.findall(r"http://127\.0\.0\.1:\d+(/link/\S+)", said)[0]
        status, headers = asked(port, link)
        assert status == 303
        cookie = headers["set-cookie"].partition(";")[0]
        assert asked(port, "/golden", cookie=cookie)[0] == 200
        assert asked(port, link)[0] == 404  # it works once
        assert asked(port, "/", host="evil.example")[0] == 421
        asked(port, "/sign-in", **{"X-Forwarded-For": "10.9.9.9"})  # no proxy was named
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
    assert who_asked(log) == ["127.0.0.1"]


@pytest.mark.deep  # tests/web/release/test_rounds.py, in this process
@posix
def test_releases_go_on_while_it_serves(workspace: Path) -> None:
    now = time.time_ns() // 1_000  # as the server's clock: a step of tomorrow would be refused
    with open_workspace(workspace, now=now) as opened:
        begin(opened, now=now)
    with served(workspace, "--workers", "2"), open_workspace(workspace, now=now) as opened:
        until = time.monotonic() + 60
        while pipeline.state_of(opened, "newer").evidence == {}:
            assert time.monotonic() < until
            time.sleep(0.1)
        time.sleep(1)  # the other process has had its round, too
        kinds = [event.kind for event in pipeline.events_of(opened, "newer")]
    assert kinds.count("evidence") == 1, "one of the processes acts"


def who_asked(log: str) -> list[str]:
    """The addresses from which the page to sign in was asked for."""
    said = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [
        each["address"]
        for each in said
        if (each.get("method"), each.get("path")) == ("GET", "/sign-in")
    ]


@contextmanager
def as_it_was() -> Iterator[None]:
    """What ``run`` sets in its process is set back: the environment, signals, and the log."""
    loggers = [logging.getLogger(name) for name in ("", "karat", "uvicorn.error", "uvicorn.access")]
    held = [(each.handlers[:], each.level, each.propagate) for each in loggers]
    numbers = (signal.SIGTERM, signal.SIGINT)
    handlers = [signal.getsignal(each) for each in numbers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")
        patch.setattr(server, "_LAST_S", 1e6)  # else it ends this process, as it would its own
        try:
            yield
        finally:
            for number, handler in zip(numbers, handlers, strict=True):
                signal.signal(number, handler)
            for each, (there, level, propagate) in zip(loggers, held, strict=True):
                each.handlers[:] = there
                each.setLevel(level)
                each.propagate = propagate


def run_here(act: Callable[[int, Callable[[], object]], None], serving: Serving) -> int:
    """What ``run`` returns in this process, while a thread does ``act(port, terminate)``.

    A server that it has not ended is ended after it.
    """
    ended = threading.Event()

    def terminate() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def acts(port: int) -> None:
        assert asked(port, "/healthz")[0] == 200
        try:
            act(port, terminate)
        finally:
            if not ended.wait(0.1):
                terminate()

    with as_it_was(), ThreadPoolExecutor(1) as pool:
        with listen("127.0.0.1", 0) as listening:
            acting = pool.submit(acts, listening.getsockname()[1])
            code = run(serving, listening)
            ended.set()
        acting.result()
    return code


def half_requests(port: int, end: Callable[[], object]) -> None:
    """As many as take the place of others, of which one waits for its end; ``end`` is called."""
    with ExitStack() as lines:
        half = [
            lines.enter_context(socket.create_connection(("127.0.0.1", port), 30))
            for _ in range(40)
        ]
        for each in half:
            with suppress(OSError):  # those that came first made room already
                each.sendall(b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\nx-")
        assert asked(port, "/healthz")[0] == 200
        assert half[-1].recv(100).startswith(b"HTTP/1.1 408 ")
        asked(port, "/sign-in", **{"X-Forwarded-For": "10.9.9.9"})
        end()


@posix
@pytest.mark.deep  # the next one, by the command
def test_half_requests_end_and_keep_nobody_out_by_the_command(workspace: Path) -> None:
    words = ("--timeout", "1", "--connections", "8", "--log", "json", "--proxy", "127.0.0.1")
    with served(workspace, *words) as (process, port, _said):
        half_requests(port, process.terminate)
        process.wait(10)  # a request is logged when it was answered
    assert who_asked((workspace.parent / "log").read_text()) == ["10.9.9.9"]


@pytest.mark.deep  # framework/test_connections.py
@posix
def test_half_requests_end_and_keep_nobody_out(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a proxy that was named says who asks."""
    local = Settings(workspace, accounts=False, hosts=LOCAL, proxies=("127.0.0.1",))
    bounded = replace(local, patience_s=1, connections=8)
    assert run_here(half_requests, Serving(bounded, log="json")) == 0
    assert who_asked(capsys.readouterr().err) == ["10.9.9.9"]


@posix
@pytest.mark.deep  # kills a process, and waits for what follows
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


def asks_slowly(port: int, terminate: Callable[[], object]) -> None:
    """An upload whose body is still coming when SIGTERM comes is answered."""
    line = socket.create_connection(("127.0.0.1", port), 30)
    body = b"name=anna&password=x"
    line.sendall(
        b"POST /sign-in HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
        b"content-type: application/x-www-form-urlencoded\r\n"
        b"content-length: %d\r\n\r\n" % len(body) + body[:5]
    )
    threading.Event().wait(0.2)
    terminate()
    threading.Event().wait(0.2)
    line.sendall(body[5:])
    said = b""
    while data := line.recv(65536):
        said += data
    line.close()
    assert said.startswith(b"HTTP/1.1 404")  # on this machine alone there are no accounts


@posix
@pytest.mark.deep  # the next one, by the command
def test_a_request_under_way_ends_first_by_the_command(workspace: Path) -> None:
    with served(workspace) as (process, port, _):
        asks_slowly(port, process.terminate)
        assert process.wait(10) == 0


@posix
def test_a_request_under_way_ends_first(workspace: Path) -> None:
    local = Settings(workspace, accounts=False, hosts=LOCAL)
    assert run_here(asks_slowly, Serving(local)) == 0


@posix
def test_where_the_app_cannot_start_run_returns_4(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = Serving(Settings(workspace.parent / "none"))
    with as_it_was(), listen("127.0.0.1", 0) as listening:
        assert run(nowhere, listening) == 4
    assert "is not in a workspace" in capsys.readouterr().err

    class Workers:
        """As uvicorn leaves them when none of them could start."""

        def __init__(self, *_: object) -> None:
            self.processes = [SimpleNamespace(exitcode=code) for code in (None, STARTUP_FAILURE)]

        def run(self) -> None:
            pass

    monkeypatch.setattr(server, "Multiprocess", Workers)
    with as_it_was(), listen("127.0.0.1", 0) as listening:
        assert run(replace(nowhere, workers=2), listening) == 4


@pytest.mark.deep  # the one before it, in processes of its own
@pytest.mark.parametrize("workers", ["1", "2"])
def test_where_the_app_cannot_start_it_ends_with_4(workspace: Path, workers: str) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from karat.web.server import Serving, listen, run\n"
        "from karat.web.framework.settings import LOCAL, Settings\n"
        "where = Serving(Settings(Path(sys.argv[1])), port=0, workers=int(sys.argv[2]))\n"
        "if __name__ == '__main__':\n"
        "    sys.exit(run(where, listen('127.0.0.1', 0)))\n"
    )
    script = workspace.parent / "start.py"
    script.write_text(program)
    done = subprocess.run(
        [sys.executable, str(script), str(workspace.parent / "none"), workers],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "is not in a workspace" in done.stderr


def record(message: str, **about: object) -> logging.LogRecord:
    made = logging.LogRecord("karat.access", logging.INFO, "f.py", 1, message, (), None)
    made.created = datetime(2026, 3, 1, 2, 0, 0, 123_000, tzinfo=UTC).timestamp()
    for name, value in about.items():
        setattr(made, name, value)
    return made


REQUEST = {
    "method": "GET",
    "path": "/judge/shop",
    "status": 200,
    "ms": 12.3,
    "person": "anna",
    "address": "10.0.0.7",
}


def test_a_request_is_an_object_with_what_is_known_of_it() -> None:
    line = JsonLines().format(record("GET /judge/shop 200", **REQUEST))
    assert json.loads(line) == {
        "time": "2026-03-01T02:00:00.123Z",
        "level": "info",
        "message": "GET /judge/shop 200",
        **REQUEST,
    }
    shown = Text().format(record("GET /judge/shop 200", **REQUEST))
    assert shown == "2026-03-01T02:00:00.123Z info    GET /judge/shop 200  12.3 ms  anna  10.0.0.7"


def test_nobody_is_null_in_one_and_a_dash_in_the_other() -> None:
    nobody = record("GET / 303", **{**REQUEST, "person": None})
    assert json.loads(JsonLines().format(nobody))["person"] is None
    assert "  –  " in Text().format(nobody)


@pytest.mark.parametrize("form", [JsonLines(), Text()])
def test_no_stranger_can_begin_a_line_or_command_a_terminal(form: logging.Formatter) -> None:
    said = "GET /\nforged\u2028 line \x1b[2J 200"
    line = form.format(record(said, **{**REQUEST, "person": "an\nna\x1b"}))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line


def test_an_error_has_its_number_and_its_trace() -> None:
    made = record("error 1a2b", error="1a2b")
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        made.exc_info = (type(error), error, error.__traceback__)
    said = json.loads(JsonLines().format(made))
    assert said["error"] == "1a2b"
    assert said["trace"].endswith("ValueError: two\nlines\n")
    assert Text().format(made).splitlines()[1].startswith("Traceback")


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_servers_own_log_of_requests_is_off(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would hold the secrets of links."""
    with as_it_was():
        logging.config.dictConfig(log_config(form))
        logging.getLogger("uvicorn.access").info("GET /link/secret")
        logging.getLogger("uvicorn.error").info("Uvicorn running")
        logging.getLogger("uvicorn.error").warning("careful")
        logging.getLogger("karat.access").info("GET / 200", extra=REQUEST)
    first, second = capsys.readouterr().err.splitlines()
    assert "careful" in first
    assert "GET / 200" in second
