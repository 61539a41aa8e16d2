"""``karat`` and ``pytest`` for the shell, a third of a second to a command rather than some.

A server that has imported all of karat forks for each command. The ``karat`` that it
puts on PATH is a client: it hands over its arguments, folder, environment and standard streams,
and ends with the exit code of the command. ``karat demo`` and ``karat serve``, which start programs
of their own or are stopped by signals, are the real ones. ``pytest`` imports karat anew, for it
rewrites the asserts of its plugins as they are imported.

    folder = warm_karat.start()  # to put first on PATH; None where processes cannot be forked
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import selectors
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

REAL = ("demo", "serve")
CLIENT = f"""#!{sys.executable} -IS
import array, json, os, socket, sys
name = os.path.basename(sys.argv[0])
if name == "karat" and sys.argv[1:2] and sys.argv[1] in {REAL!r}:
    os.execv({os.fspath(Path(sys.executable).parent / "karat")!r}, ["karat", *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
asked = json.dumps([name, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
server.sendmsg([len(asked).to_bytes(8)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(asked)
said = server.recv(4)
sys.exit(int.from_bytes(said, signed=True) if said else 70)
"""
LOADED = (
    "alembic.command",
    "duckdb",
    "pyarrow",
    "pytest",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    "vl_convert",
    *(f"_pytest.{name}" for name in ("doctest", "junitxml", "legacypath", "pytester", "terminal")),
)
"""What commands import, besides all of karat."""


@functools.cache
def start() -> Path | None:
    """Start the server; it ends with this process."""
    if not hasattr(os, "pidfd_open"):
        return None
    # A socket's path has at most 107 bytes, and pytest's own folders are longer than that.
    place = tempfile.TemporaryDirectory(prefix="warm")
    folder = Path(place.name)
    for name in ("karat", "pytest"):
        client = folder / name
        client.write_text(CLIENT, encoding="utf-8")
        client.chmod(0o755)
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        env={**os.environ, **plain},
        stdin=subprocess.PIPE,  # closed when this process ends, however it ends
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    if not process.stdout.readline():  # this machine lacks what it needs: commands start cold
        process.kill()
        place.cleanup()
        return None

    def stop() -> None:
        process.kill()
        process.wait()
        place.cleanup()

    atexit.register(stop)
    return folder


def command() -> list[str]:
    """The words that start ``karat``, warm where that can be had."""
    folder = start()
    if folder is None:
        return [sys.executable, "-c", "from karat.cli.main import main; main()"]
    return [str(folder / "karat")]


def serve(folder: Path) -> None:
    """Fork for each command that a client hands over, until standard input is closed."""
    import karat

    modules = (each.name for each in pkgutil.walk_packages(karat.__path__, "karat."))
    for name in (*modules, *LOADED):
        if not name.endswith(("__main__", "migrations.env")):  # these run as they are imported
            importlib.import_module(name)
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(folder / "socket"))
    listening.listen()
    os.close(os.pidfd_open(os.getpid()))  # fails here where it is forbidden
    print("ready", flush=True)
    events = selectors.DefaultSelector()
    events.register(listening, selectors.EVENT_READ)
    events.register(sys.stdin.fileno(), selectors.EVENT_READ)
    while True:
        for key, _ in events.select():
            if key.fileobj is listening:
                client, _ = listening.accept()
                process = _begin(client)
                events.register(os.pidfd_open(process), selectors.EVENT_READ, (process, client))
            elif key.data is None:
                return
            else:
                process, client = key.data
                events.unregister(key.fileobj)
                os.close(key.fd)
                _, status = os.waitpid(process, 0)
                client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
                client.close()


def _begin(client: socket.socket) -> int:
    """The process that runs the command a client hands over."""
    length, streams, _, _ = socket.recv_fds(client, 8, 3)
    asked = b""
    while len(asked) < int.from_bytes(length):
        asked += client.recv(1 << 16)
    process = os.fork()
    if process == 0:
        name, arguments, directory, environment = json.loads(asked)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [name, *arguments]
        sys.path[0] = str(Path(sys.executable).parent)  # as for the script that pip makes
        code: object = 70
        try:
            (_pytest if name == "pytest" else _karat)()
        except SystemExit as end:
            code = end.code
        finally:  # taking down all that is loaded would take longer than most commands
            sys.stdout.flush()
            os._exit(code if isinstance(code, int) else int(code is not None))
    for stream in streams:
        os.close(stream)
    return process


def _karat() -> None:
    """Run what the command line says."""
    from karat.cli.main import main

    main()


def _pytest() -> None:
    """Run pytest, as if its plugins, karat and anyio, had not been imported."""
    for name in [each for each in sys.modules if each.partition(".")[0] in {"karat", "anyio"}]:
        del sys.modules[name]
    import pytest

    sys.exit(pytest.main())


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
