"""Raters who judge one queue at once, each a process of its own; some are killed without warning.

    python rating_processes.py URL SET_ID FOLDER RATERS KILLS LEASE_MS

Each appends the judgments that were acknowledged to it to a file of its own in FOLDER, after the
transaction has ended. It exits with 1 if a rater ended in an error.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import uuid
from pathlib import Path

import sqlalchemy as sa

from karat.store.sql import judgments, queue
from karat.store.sql.opening import open_store
from karat.store.sql.schema import pair, slot


def clock() -> int:
    """Microseconds UTC."""
    return time.time_ns() // 1000


def judge(url: str, set_id: int, rater: str, acknowledged: Path, lease_us: int) -> None:
    """Judge until no slot is open."""
    store = open_store(url)
    out = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        start = time.perf_counter()
        with store.begin() as c:
            claim = queue.claim(c, set_id, rater, now=clock(), lease_us=lease_us, order="mixed")
        if claim is None:
            with store.read() as c:
                unfilled = sa.select(slot.c.id).join(pair, pair.c.id == slot.c.pair_id)
                if c.execute(unfilled.where(slot.c.judgment_id.is_(None)).limit(1)).first() is None:
                    return
            time.sleep(0.02)
            continue
        time.sleep(random.uniform(0, 0.02))  # reads
        grade = float(sum(claim.doc_id.encode()) % 4)
        token = uuid.uuid4().hex
        try:
            for _ in range(2):  # the page that sent it lost the answer, and sends it again
                with store.begin() as c:
                    new = judgments.submit(
                        c, set_id, claim.slot_id, rater, grade=grade, now=clock(), token=token
                    )
        except judgments.LeaseLost:
            continue
        seconds = time.perf_counter() - start
        os.write(out, f"{new}\t{claim.query_id}\t{claim.doc_id}\t{seconds}\n".encode())


def size_of(folder: Path) -> int:
    """Bytes of all that was acknowledged; a judgment has about 40."""
    return sum(path.stat().st_size for path in folder.iterdir())


def main() -> int:
    """Start the raters, kill some, and wait for the rest."""
    url, folder = sys.argv[1], Path(sys.argv[3])
    set_id, raters, kills, lease_ms = map(int, (sys.argv[2], *sys.argv[4:]))
    chance = random.Random(7)
    working: dict[int, str] = {}

    def start(rater: str) -> None:
        pid = os.fork()  # nothing is open yet: a start of its own would take a second each
        if not pid:
            status = 1
            try:
                judge(url, set_id, rater, folder / rater, lease_ms * 1000)
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        working[pid] = rater

    for number in range(raters):
        start(f"rater {number}")
    for number in range(kills):
        # In the midst of the work, however fast the machine is: some judgments on, then anywhere.
        goal = size_of(folder) + chance.randrange(3) * 40
        while size_of(folder) < goal:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.03))
        pid = chance.choice(sorted(working))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            print(f"{number} kills were in time", file=sys.stderr)
            return 1
        rater = working.pop(pid)
        start(rater if chance.random() < 0.5 else f"new {number}")  # half of them never return
    failed = 0
    for pid in working:
        failed += os.waitpid(pid, 0)[1] != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
