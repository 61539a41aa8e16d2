"""Judges on this machine: a program that reads and writes JSON lines, and a function.

Both take what a chat gets (``golden.judge_prompt.content``, with ``query_id``, ``doc_id`` and
``grades``), and return an object with ``grade``, or ``cannot_judge``, and optionally ``reason``,
``evidence`` and ``instructions_in_document``; a function may also return a number.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from karat.clients.llm.asking import NoReply, Question, Reply
from karat.clients.python_function import load, place_of
from karat.errors import UsageError
from karat.golden.judge_prompt import content, number
from karat.tables.golden.machine_judges import JudgeConfig, JudgePair

_LARGEST = 1 << 20  # bytes of a line
_WAIT = 2.0  # seconds for a program to end by itself


def asked(config: JudgeConfig, pair: JudgePair) -> dict[str, Any]:
    """What such a judge gets."""
    grades = [number(grade) for grade in config.grades]
    ids = {"query_id": pair.query_id, "doc_id": pair.doc_id}
    return ids | content(config, pair) | {"grades": grades}


class Function:
    """A judge that is a function: ``module:function``, found from the folder of karat.toml."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config, self._function = config, load(config.function, [config.root])

    async def ask(self, question: Question) -> Reply:
        try:
            value: Any = await asyncio.to_thread(self._function, asked(self._config, question.pair))  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - users' code raises anything
            place = place_of(error)
            where = f" ({place})" if place else ""
            raise NoReply(f"{type(error).__name__}: {error}{where}") from None
        if isinstance(value, int | float):
            value = {"grade": value}
        if not isinstance(value, dict):
            return Reply(text=f"a {type(value).__name__}, not an object or a number")
        return Reply(value=value)

    async def close(self) -> None:
        """Nothing is open."""


class Program:
    """A judge that is a program: a line with a pair in, a line with its judgment out, in turn."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def ask(self, question: Question) -> Reply:
        line = json.dumps(asked(self._config, question.pair), ensure_ascii=False) + "\n"
        async with self._lock:
            process = await self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                with suppress(ConnectionError):  # it may have ended: its exit code says more
                    process.stdin.write(line.encode("utf-8", "surrogatepass"))
                    await process.stdin.drain()
                out = await asyncio.wait_for(process.stdout.readline(), self._config.timeout)
            except TimeoutError:
                await self.close()
                raise NoReply(f"timeout after {self._config.timeout:g} s", again=True) from None
            except (OSError, ValueError) as error:
                await self.close()
                raise NoReply(f"{self._config.command[0]}: {error}", again=True) from None
            if not out:
                code = await process.wait()
                self._process = None
                raise NoReply(
                    f"{self._config.command[0]} ended with {code} instead of answering",
                    again=code != 127,
                )
        return Reply(text=out.decode("utf-8", "replace"))

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._config.command,
                    cwd=self._config.root,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=_LARGEST,
                )
            except OSError as error:
                raise UsageError(
                    f"{self._config.where} command: {error}", fix='command = ["python", "judge.py"]'
                ) from None
        return self._process

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
            await asyncio.wait_for(process.wait(), _WAIT)
            return
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
