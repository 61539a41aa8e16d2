"""What karat adds to the time of an engine: a search of many queries beside a bare client loop.

    python benchmarks/search_engine.py [--queries 10000] [--concurrency 8] [--rounds 3]

The engine is a server of its own process that answers each request after 1 ms with ten documents.
Both send the same requests with httpx2, with the same number of threads, in turn; printed are the
rates and their ratio in each round, and the same for processor time, which other programs on the
machine disturb less.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import queue
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import polars as pl

from karat.formats.own.engines import read_engine
from karat.tables import Queries
from karat.workflows.engines.live import search_engine

DOCUMENTS = [{"id": f"d{n}", "score": 10.0 - n, "title": f"document {n}"} for n in range(10)]


def main() -> None:
    """Print the rates of both, round by round."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}/search"
    texts = [f"query number {n}" for n in range(asked.queries)]
    for number in range(1, asked.rounds + 1):
        bare, bare_busy = timed(bare_loop, url, texts, asked.concurrency)
        own, own_busy = timed(karat, url, texts, asked.concurrency)
        count, micro = asked.queries, 1e6 / asked.queries
        print(
            f"round {number}: bare {count / bare:,.0f}/s, karat {count / own:,.0f}/s, ratio "
            f"{bare / own:.2f}; processor {bare_busy * micro:,.0f} and {own_busy * micro:,.0f} us "
            f"a query, ratio {bare_busy / own_busy:.2f}"
        )
    server.kill()


def timed(work: Callable[[str, list[str], int], float], *given: Any) -> tuple[float, float]:
    """Seconds that work says it took, and the processor time of this process."""
    began = time.process_time()
    return work(*given), time.process_time() - began


def bare_loop(url: str, texts: list[str], concurrency: int) -> float:
    """Seconds of threads that send the queries and read the ids."""
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for text in texts:
        todo.put(text)
    found: list[list[str]] = []

    def work() -> None:
        while True:
            try:
                text = todo.get_nowait()
            except queue.Empty:
                return
            reply = client.get(f"{url}?q={quote(text)}").json()
            found.append([hit["id"] for hit in reply["results"]])

    began = time.perf_counter()
    with httpx2.Client(limits=httpx2.Limits(max_keepalive_connections=64)) as client:
        threads = [threading.Thread(target=work) for _ in range(concurrency)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == len(texts)
    return time.perf_counter() - began


def karat(url: str, texts: list[str], concurrency: int) -> float:
    """Seconds of a search, the run written."""
    frame = pl.DataFrame({"query_id": [f"q{n}" for n in range(len(texts))], "text": texts})
    with tempfile.TemporaryDirectory() as folder:
        declared = f'[engine.e]\nkind = "http"\nurl = "{url}?q={{query}}"\nhits = "$.results[*]"\n'
        (Path(folder) / "karat.toml").write_text(f'{declared}score = "$.score"\n')
        config = read_engine("e", Path(folder))
        began = time.perf_counter()
        out = Path(folder) / "run.parquet"
        found = search_engine(Queries(frame), config, out, concurrency=concurrency, progress=False)
        assert found.ok == len(texts)
        return time.perf_counter() - began


def serve(pipe: Connection) -> None:
    """Answer each request after a millisecond; HTTP/1.1, kept alive."""
    body = json.dumps({"results": DOCUMENTS}).encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(0.001)
                writer.write(reply)

    async def run() -> None:
        started = await asyncio.start_server(answer, "127.0.0.1", 0)
        pipe.send(started.sockets[0].getsockname()[1])
        await started.serve_forever()

    asyncio.run(run())


if __name__ == "__main__":
    main()
