"""S3 on loopback for tests, by moto's server; its bucket and the keys that open it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from karat.engines.frames import s3

SECRET = "wJalrXUtnFEMI/never/shown"


class Bucket:
    """A bucket that tests write into, which karat does not."""

    def __init__(self, name: str) -> None:
        self.name = name

    def address(self, key: str) -> str:
        return f"s3://{self.name}/{key}"

    def put(self, key: str, data: bytes) -> str:
        """Write an object; its address."""
        path = f"{self.name}/{key}"
        with s3.filesystem().open_output_stream(path, compression=None) as stream:
            stream.write(data)
        return self.address(key)

    def copy(self, folder: Path, key: str) -> str:
        """The files of a folder, as ``aws s3 sync`` copies them."""
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != ".lock":
                self.put(f"{key}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        return self.address(key)


@contextmanager
def serving() -> Iterator[Bucket]:
    """A new server with an empty bucket, and the environment that leads there."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_REGION", "eu-central-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        from pyarrow.fs import S3FileSystem

        S3FileSystem(
            access_key="AKIATEST",
            secret_key=SECRET,
            region="eu-central-1",
            endpoint_override=f"http://{host}:{port}",
            allow_bucket_creation=True,
        ).create_dir("logs")
        try:
            yield Bucket("logs")
        finally:
            server.stop()
