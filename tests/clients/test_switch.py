"""Switches: real files, programs, and servers on this machine."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.quepid_case import opensearch

from karat.clients import switch, webhook
from karat.clients.switch import SwitchError, put, read
from karat.errors import UsageError
from karat.experiments.assignment import Rollout, rollout_of
from karat.tables.engines import Secret
from karat.tables.release.pipeline import SwitchConfig
from karat.workflows.experiments.assignment import read_rollout

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs of a shell")

QUARTER = Rollout("new-ranker", "s", control_share=0.25, treatment_share=0.25)
ALL = replace(QUARTER, control_share=0.0, treatment_share=1.0)
STOPPED = replace(QUARTER, control_share=0.0, treatment_share=0.0, stopped=True)
FILE = SwitchConfig("file", path="rollout.json")
HOOK = SwitchConfig("webhook", secret=Secret(env="HOOK_SECRET"))
ALIAS = SwitchConfig("alias", alias="shop", baseline_index="v1", candidate_index="v2")
HUSH = {"HOOK_SECRET": "hush"}


class Server(ThreadingHTTPServer):
    """A receiver of webhooks, and the aliases of a search engine; ``trouble`` comes first."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.trouble: list[int] = []
        self.came: list[tuple[str, dict[str, str], bytes]] = []
        self.aliases: dict[str, dict[str, dict[str, Any]]] = {"v1": {}, "v2": {}, "v0": {}}
        self.deaf = False  # acknowledges changes of aliases, and does nothing

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        if self.troubled(b""):
            return
        name = unquote(self.path.removeprefix("/_alias/"))
        found = {
            index: {"aliases": {name: aliases[name]}}
            for index, aliases in self.server.aliases.items()
            if name in aliases
        }
        if found:
            self.send(200, found)
        else:
            self.send(404, {"error": f"alias [{name}] missing", "status": 404})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.troubled(body):
            return
        if self.path != "/_aliases":
            self.send(204, None)
            return
        changed = {index: dict(aliases) for index, aliases in self.server.aliases.items()}
        for action in json.loads(body)["actions"]:
            [(kind, values)] = action.items()
            index, alias = values.pop("index"), values.pop("alias")
            if index not in changed:
                reason = f"no such index [{index}]"
                self.send(404, {"error": {"root_cause": [{"reason": reason}]}, "status": 404})
                return
            if kind == "add":
                changed[index][alias] = values
            else:
                del changed[index][alias]
        if not self.server.deaf:
            self.server.aliases = changed  # all actions at once
        self.send(200, {"acknowledged": True})

    def troubled(self, body: bytes) -> bool:
        headers = {key.lower(): value for key, value in self.headers.items()}
        self.server.came.append((f"{self.command} {self.path}", headers, body))
        code = self.server.trouble.pop(0) if self.server.trouble else 0
        if code:
            self.send(code, {"error": "trouble"}, {"Retry-After": "0"})
        return bool(code)

    def send(self, code: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(code)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as started:
        thread = threading.Thread(target=started.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield started
        started.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        yield started


@pytest.fixture
def gone() -> str:
    """An address where no server listens."""
    with serving() as started:
        return started.url


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch, "_PAUSE", 0.02)


# A file


def test_a_file_is_what_assign_reads(tmp_path: Path) -> None:
    assert read(FILE, tmp_path) is None
    for rollout in (QUARTER, QUARTER, ALL, STOPPED):
        put(FILE, tmp_path, rollout)
        assert read(FILE, tmp_path) == rollout
        assert read_rollout(tmp_path / "rollout.json") == rollout
    assert [path.name for path in tmp_path.iterdir()] == ["rollout.json"]


def test_a_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    target = tmp_path / "shared/real.json"
    (tmp_path / "rollout.json").symlink_to(target)
    put(FILE, tmp_path, QUARTER)
    assert stat.S_IMODE(target.stat().st_mode) & 0o400
    target.chmod(0o640)
    put(FILE, tmp_path, ALL)
    assert (tmp_path / "rollout.json").is_symlink()
    assert (stat.S_IMODE(target.stat().st_mode), read(FILE, tmp_path)) == (0o640, ALL)


def test_the_file_and_then_its_name_are_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[str] = []

    def note(handle: int) -> None:
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        kinds.append("folder" if folder else "file")
        assert (tmp_path / "rollout.json").exists() == folder

    monkeypatch.setattr(os, "fsync", note)
    put(FILE, tmp_path, QUARTER)
    assert kinds == ["file", "folder"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"experiment": "e"}'])
def test_a_damaged_file_is_an_error_and_can_be_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rollout.json").write_bytes(content)
    with pytest.raises(SwitchError, match=r"rollout\.json: not a rollout file") as damaged:
        read(FILE, tmp_path)
    assert "fix: karat release run" in str(damaged.value)
    put(FILE, tmp_path, QUARTER)
    assert read(FILE, tmp_path) == QUARTER


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SwitchError, match=r"no/rollout\.json cannot be written: No such file"):
        put(replace(FILE, path="no/rollout.json"), tmp_path, QUARTER)
    (tmp_path / "folder").mkdir()
    with pytest.raises(SwitchError, match=r"folder cannot be written: Is a directory"):
        put(replace(FILE, path="folder"), tmp_path, QUARTER)
    with pytest.raises(SwitchError, match=r"folder cannot be read: Is a directory"):
        read(replace(FILE, path="folder"), tmp_path)
    put(FILE, tmp_path, QUARTER)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SwitchError, match=r"No space left on device\n  fix: check the folder"):
        put(FILE, tmp_path, ALL)
    assert read(FILE, tmp_path) == QUARTER
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "rollout.json"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write it")
def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(SwitchError, match="Permission denied"):
            put(FILE, tmp_path, QUARTER)
    finally:
        tmp_path.chmod(0o700)


# A webhook


def test_a_webhook_gets_the_rollout_signed(server: Server, tmp_path: Path) -> None:
    config = replace(HOOK, url=f"{server.url}/hook")
    put(config, tmp_path, QUARTER, environment=HUSH)
    put(config, tmp_path, QUARTER, environment=HUSH)
    (path, headers, body), (_, later_headers, later) = server.came
    assert path == "POST /hook"
    assert headers[webhook.SIGNATURE.lower()] == webhook.sign(body, "hush")
    assert rollout_of(body, "body") == QUARTER
    # The same rollout, posted again, is not a duplicate, and can be told from the earlier one.
    assert headers[webhook.DELIVERY.lower()] != later_headers[webhook.DELIVERY.lower()]
    assert json.loads(body)["sent_us"] < json.loads(later)["sent_us"]
    assert read(config, tmp_path) is None


def test_a_webhook_is_tried_again_and_given_up(server: Server, gone: str, tmp_path: Path) -> None:
    config = replace(HOOK, url=f"{server.url}/secret-path")
    server.trouble = [503, 503]
    put(config, tmp_path, STOPPED, environment=HUSH)
    assert len({body for _, _, body in server.came}) == 1
    assert len(server.came) == 3
    server.trouble = [503] * 9
    with pytest.raises(SwitchError, match=r"status 503 .*, after 3 tries\n  fix: check") as error:
        put(config, tmp_path, STOPPED, environment=HUSH)
    assert "secret-path" not in str(error.value)
    server.trouble = [403]
    with pytest.raises(SwitchError, match=r"rollout: 127\.0\.0\.1: status 403"):
        put(config, tmp_path, STOPPED, environment=HUSH)
    with pytest.raises(SwitchError, match="no response"):
        put(replace(config, url=gone), tmp_path, STOPPED, environment=HUSH)


def test_a_webhook_takes_twenty_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert switch.longest(replace(HOOK, timeout=3600)) <= 20


def test_a_secret_that_is_missing_or_empty(server: Server, tmp_path: Path) -> None:
    config = replace(HOOK, url=f"{server.url}/hook")
    with pytest.raises(UsageError, match=r"\[switch\] secret: .* HOOK_SECRET is not set"):
        put(config, tmp_path, QUARTER, environment={})
    with pytest.raises(UsageError, match=r"\[switch\] secret \(env HOOK_SECRET\) is empty"):
        put(config, tmp_path, QUARTER, environment={"HOOK_SECRET": ""})
    assert not server.came
    (tmp_path / "secret").write_text("hush\n")
    put(replace(config, secret=Secret(file="secret")), tmp_path, QUARTER, environment={})
    assert server.came[0][1][webhook.SIGNATURE.lower()] == webhook.sign(server.came[0][2], "hush")


# A command


def shell(script: str, timeout: float = 10.0) -> SwitchConfig:
    return SwitchConfig("command", command=("sh", "-c", script), timeout=timeout)


def test_a_command_reads_the_rollout(tmp_path: Path) -> None:
    config = shell("cat > out.json; echo $WHO > who; echo chatter")
    put(config, tmp_path, QUARTER, environment={"PATH": os.environ["PATH"], "WHO": "anna"})
    assert rollout_of((tmp_path / "out.json").read_bytes(), "out") == QUARTER
    assert (tmp_path / "who").read_text() == "anna\n"
    assert read(config, tmp_path) is None
    put(shell("exit 0"), tmp_path, QUARTER)  # without reading


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(SwitchError) as failed:
        put(shell("echo one >&2; printf 'no\\033 such\\nflag x\\n\\n' >&2; exit 3"), tmp_path, ALL)
    assert str(failed.value).startswith("sh ended with 3: flag x\n  fix: run it by hand")
    with pytest.raises(SwitchError, match=r"sh ended with 1\n"):
        put(shell("exit 1"), tmp_path, ALL)
    with pytest.raises(SwitchError, match="sh was killed by signal 9"):
        put(shell("kill -9 $$"), tmp_path, ALL)
    with pytest.raises(SwitchError, match="no-such-program cannot be started: No such file"):
        put(SwitchConfig("command", command=("no-such-program",)), tmp_path, ALL)
    noisy = shell("yes error | head -c 3000000 >&2; echo last >&2; exit 1")
    with pytest.raises(SwitchError, match="ended with 1: last"):
        put(noisy, tmp_path, ALL)


def test_a_command_is_killed_with_its_children(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(SwitchError, match=r"sh did not end within 0\.1 s, and was killed: slow"):
        put(shell("echo slow >&2; (sleep 0.4; touch late) & wait", 0.1), tmp_path, ALL)
    put(shell("(sleep 0.4; touch late) & exit 0"), tmp_path, ALL)
    assert time.monotonic() - began < 3
    time.sleep(0.5)
    assert not (tmp_path / "late").exists(), "nothing sets the switch after put returned"


# An alias


def test_an_alias_of_a_peer(tmp_path: Path) -> None:
    import httpx2

    with opensearch() as url:
        for index in ("v1", "v2"):
            httpx2.put(f"{url}/{index}").raise_for_status()
        config = replace(ALIAS, url=url)
        assert read(config, tmp_path) is None
        for rollout, index in ((QUARTER, ""), (ALL, "v2"), (ALL, "v2"), (STOPPED, "v1")):
            if not index:
                with pytest.raises(UsageError):
                    put(config, tmp_path, rollout)
                continue
            put(config, tmp_path, rollout)
            assert list(httpx2.get(f"{url}/_alias/shop").json()) == [index]


def test_an_alias_moves_in_one_request(server: Server, tmp_path: Path) -> None:
    config = replace(ALIAS, url=server.url, headers={"authorization": Secret(env="TOKEN")})
    key = {"TOKEN": "Bearer x"}
    assert read(config, tmp_path, environment=key) is None
    put(config, tmp_path, replace(ALL, treatment_share=0.0), environment=key)
    server.aliases["v1"]["shop"] = {"filter": {"term": {"live": True}}}
    for rollout, share in ((ALL, 1.0), (replace(ALL, treatment_share=1 - 1e-12), 1.0),
                           (replace(ALL, stopped=True), 0.0), (STOPPED, 0.0)):  # fmt: skip
        put(config, tmp_path, rollout, environment=key)
        now = read(config, tmp_path, environment=key)
        assert now is not None
        assert now.treatment_share == share
    assert server.aliases["v1"]["shop"] == {"filter": {"term": {"live": True}}}, "kept"
    assert not server.aliases["v2"]
    posts = [json.loads(body)["actions"] for path, _, body in server.came if "POST" in path]
    kinds = [[next(iter(action)) for action in actions] for actions in posts]
    assert kinds == [["add"], ["remove", "add"], ["remove", "add"]]
    assert {headers["authorization"] for _, headers, _ in server.came} == {"Bearer x"}


def test_an_alias_refuses_a_part_of_the_users(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"moves all users at once: shop cannot give 0\.25"):
        put(replace(ALIAS, url=server.url), tmp_path, QUARTER)
    assert not server.came


def test_an_alias_that_someone_else_moved(server: Server, tmp_path: Path) -> None:
    config = replace(ALIAS, url=server.url)
    server.aliases["v0"]["shop"] = {}
    with pytest.raises(SwitchError, match="alias shop: it points to v0, neither"):
        put(config, tmp_path, ALL)
    assert "shop" in server.aliases["v0"]
    assert read(config, tmp_path) is None
    put(config, tmp_path, STOPPED)
    assert [index for index, names in server.aliases.items() if "shop" in names] == ["v1"]


def test_an_alias_that_cannot_be_moved(server: Server, gone: str, tmp_path: Path) -> None:
    config = replace(ALIAS, url=server.url)
    server.trouble = [503, 0, 429]
    put(config, tmp_path, ALL)
    server.trouble = [503] * 9
    with pytest.raises(SwitchError, match=r"alias shop: 127\.0\.0\.1 answered 503"):
        put(config, tmp_path, STOPPED)
    server.trouble = [503]
    with pytest.raises(SwitchError, match="answered 503"):
        read(config, tmp_path)
    server.trouble = [401]
    with pytest.raises(SwitchError, match="check the credentials"):
        put(config, tmp_path, STOPPED)
    with pytest.raises(SwitchError, match=r"no such index \[v3\]"):
        put(replace(config, baseline_index="v3"), tmp_path, STOPPED)
    server.deaf = True
    with pytest.raises(SwitchError, match="it points to v2 and not to v1"):
        put(config, tmp_path, STOPPED)
    with pytest.raises(SwitchError, match="cannot reach 127"):
        put(replace(config, url=gone), tmp_path, STOPPED)
