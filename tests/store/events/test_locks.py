"""The lock of an event store, on file systems that have none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from karat.errors import InputError
from karat.store.events.log import importing

fcntl = pytest.importorskip("fcntl", reason="needs POSIX locks")


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (errno.ENOLCK, "the file system does not support locks: No locks available"),
        (errno.ENOSYS, "the file system does not support locks"),
        (errno.EWOULDBLOCK, "another import into this event store is running"),
    ],
)
def test_a_lock_that_is_not_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str
) -> None:
    def refused(_file: int, _how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(InputError, match=what), importing(tmp_path / "events"):
        pass
