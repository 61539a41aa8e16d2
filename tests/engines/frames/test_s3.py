"""Objects in S3: which ones an address names, and what is said if they cannot be read."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.buckets import SECRET, Bucket, serving

from karat.engines.frames import s3
from karat.errors import InputError, KaratError, UsageError


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with serving() as opened:
        for key in ("a/1.gz", "a/2.csv", "a/b/3.gz", "a/b/4 é+%.gz", "a/[x].gz", "top.gz"):
            opened.put(key, key.encode())
        yield opened


@pytest.mark.parametrize(
    ("address", "keys"),
    [
        ("s3://logs/a/1.gz", ["a/1.gz"]),
        ("s3://logs/a", ["a/1.gz", "a/2.csv", "a/[x].gz", "a/b/3.gz", "a/b/4 é+%.gz"]),
        ("s3://logs/a/", ["a/1.gz", "a/2.csv", "a/[x].gz", "a/b/3.gz", "a/b/4 é+%.gz"]),
        ("s3://logs/*.gz", ["top.gz"]),
        ("s3://logs/a/*.gz", ["a/1.gz", "a/[x].gz"]),
        ("s3://logs/a/[x].gz", ["a/[x].gz"]),  # a name before a pattern, as for local files
        ("s3://logs/a/[12].*", ["a/1.gz", "a/2.csv"]),
        ("s3://logs/a/[!1].*", ["a/2.csv"]),
        ("s3://logs/?/?.gz", ["a/1.gz"]),
        ("s3://logs/**/*.gz", ["a/1.gz", "a/[x].gz", "a/b/3.gz", "a/b/4 é+%.gz", "top.gz"]),
        ("s3://logs/a/b/4 é+%.gz", ["a/b/4 é+%.gz"]),
    ],
)
def test_the_objects_of_an_address(bucket: Bucket, address: str, keys: list[str]) -> None:
    assert [each.address for each in s3.listed(address)] == [bucket.address(key) for key in keys]


def test_an_object_is_copied_with_its_hash(bucket: Bucket, tmp_path: Path) -> None:
    (stored,) = s3.listed("s3://logs/a/b/4 é+%.gz")
    sizes: list[int] = []
    # printf 'a/b/4 é+%%.gz' | sha256sum
    digest = "155c7eae75010a968666baa313140122185bb87f2e58a1c5819e90978e343e85"
    assert s3.fetched(stored, tmp_path / "copy", sizes.append) == digest
    assert (tmp_path / "copy").read_bytes() == "a/b/4 é+%.gz".encode()
    assert sum(sizes) == stored.size == 13


def test_an_object_that_changes_meanwhile(bucket: Bucket, tmp_path: Path) -> None:
    address = bucket.put("growing", b"one")
    (stored,) = s3.listed(address)
    bucket.put("growing", b"one and two")
    with pytest.raises(InputError, match="changed while it was being read"):
        s3.fetched(stored, tmp_path / "copy", lambda _size: None)


@pytest.mark.parametrize(
    ("address", "what"),
    [
        ("s3://nowhere/a", "there is no bucket nowhere"),
        ("s3://logs/nothing", "there is no object here"),
        ("s3://logs/a/*.zst", "no object matches this pattern"),
        ("s3://", "names no bucket"),
        ("s3://l*gs/a", "names no bucket"),
    ],
)
def test_an_address_without_objects(bucket: Bucket, address: str, what: str) -> None:
    with pytest.raises(KaratError, match=what) as caught:
        s3.listed(address)
    assert caught.value.fix
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_without_keys_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.delenv(name)
    with pytest.raises(UsageError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        s3.listed("s3://logs/a")


@contextmanager
def refusing(status: int, code: str) -> Iterator[int]:
    """A server that answers every request with an error of S3, and quotes its secret."""

    class Refusal(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 - as its base names it

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "code", "what"),
    [
        (403, "AccessDenied", "access is denied"),
        (403, "SignatureDoesNotMatch", "access is denied"),
        (403, "InvalidAccessKeyId", "access is denied"),
        (301, "PermanentRedirect", "refuses the request for the region eu-north-1"),
        (404, "NoSuchBucket", "there is no bucket logs"),
        (418, "Teapot", "cannot be read"),
    ],
)
def test_a_refusal_in_words(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, what: str
) -> None:
    for name, value in (("ACCESS_KEY_ID", "AKIA"), ("SECRET_ACCESS_KEY", SECRET)):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    with refusing(status, code) as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        with pytest.raises(InputError, match=what) as caught:
            s3.listed("s3://logs/a")
    assert caught.value.fix
    assert SECRET not in str(caught.value)
    assert "AKIA" not in str(caught.value)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:  # bound, and not listening
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        host = f"http://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("AWS_ENDPOINT_URL", host)
        with pytest.raises(InputError, match=f"{host} cannot be reached"):
            s3.listed("s3://logs/a")


@pytest.mark.parametrize("url", [f"http://ann:{SECRET}@127.0.0.1:9000", "minio:9000"])
def test_a_server_with_an_odd_address(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(UsageError, match="not the address of a server") as caught:
        s3.listed("s3://logs/a")
    assert SECRET not in str(caught.value)


def test_keys_are_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SECRET)
    assert SECRET not in repr(s3._settings())
