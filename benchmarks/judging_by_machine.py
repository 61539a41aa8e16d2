"""What karat adds to the time of a machine judge that answers at once, and its memory.

    python benchmarks/judging_by_machine.py [--pairs 100000]

The judge is a server of its own process that returns the same grade to every request. Printed are
judgments a second, the time of karat's process on the processor, which other work on the machine
hardly changes, and its largest memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import tempfile
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from karat.tables.golden.machine_judges import JudgeConfig, JudgePair, Prices
from karat.workflows.judging.autojudge import run


def main() -> None:
    """Print rate and memory."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=100_000)
    asked = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}/v1"
    text = "some words of a document, " * 40
    pairs = [JudgePair(f"q{n // 50}", f"d{n}", f"query {n}", text) for n in range(asked.pairs)]
    with tempfile.TemporaryDirectory() as folder:
        config = JudgeConfig(
            name="j", kind="chat", root=Path(folder), base_url=url, model="m", prices=Prices(1, 1)
        )
        began, busy = time.perf_counter(), time.process_time()
        found = run(config, pairs)
        took, busy = time.perf_counter() - began, time.process_time() - busy
    assert found.states == {"ok": asked.pairs}, found.states
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{asked.pairs / took:,.0f} judgments a second, {busy / asked.pairs * 1e3:.2f} ms of the "
        f"processor each; largest memory {most:,.0f} MiB"
    )
    server.kill()


def serve(pipe: Connection) -> None:
    """Answer each request at once; HTTP/1.1, kept alive."""
    said = json.dumps({"evidence": "some words", "grade": 2, "cannot_judge": None})
    choice = {"finish_reason": "stop", "message": {"content": said}}
    usage = {"prompt_tokens": 400, "completion_tokens": 20}
    body = json.dumps({"id": "x", "model": "m", "choices": [choice], "usage": usage}).encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, StopIteration):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next(line for line in lines if line.startswith(b"content-length"))
                await reader.readexactly(int(length.partition(b":")[2]))
                writer.write(reply)

    async def work() -> None:
        started = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(started.sockets[0].getsockname()[1])
        await started.serve_forever()

    asyncio.run(work())


if __name__ == "__main__":
    main()
