"""Asking a judge about many pairs: concurrency that adapts, retries, a budget, a ledger."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from karat.clients.llm.asking import Judge, NoReply, Question, Reply
from karat.clients.llm.ledger import Ledger
from karat.golden.judge_prompt import cost_nano, estimated_tokens, key, messages
from karat.golden.judge_reply import verdict, verdict_of
from karat.tables.golden.machine_judges import (
    USABLE,
    JudgeConfig,
    JudgePair,
    Outcome,
    Usage,
    Verdict,
)

TRIES, PATIENCE = 8, 600.0  # most tries of a pair, and most seconds of them
_PARKED = 120.0  # seconds of a Retry-After from which all requests wait, and none counts as a try
_SLOWER, _COOL = 0.8, 15.0  # factor of a rate limit, and seconds until the next can slow it again
_FASTER = 0.05  # share by which a clean round raises the limit
_HOPELESS = 20, 60.0  # failed requests, or seconds, without any answer: no more are sent
_LAST, _BAD = 200, 0.05  # of so many last pairs, the share without a grade that ends a run
_NOTHING = Usage()


class Asked(NamedTuple):
    """A pair to ask about."""

    key: str
    pair: JudgePair
    replicate: int


class Stopped(Exception):
    """No further pair is asked; the message says why."""


class Asking:
    """One run of asking; ``verdicts`` has what came of each key so far, and the model.

    With ``once`` no pair is asked about again, and no failure ends the run: of answers in a file.
    """

    def __init__(
        self,
        config: JudgeConfig,
        judge: Judge,
        ledger: Ledger,
        *,
        budget_nano: int | None = None,
        patient: bool = True,
        once: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        tick: Callable[[int, int], None] = lambda _done, _nano: None,
    ) -> None:
        self._config, self._judge, self._ledger = config, judge, ledger
        self._budget, self._spent, self._reserved = budget_nano, 0, 0
        self._patient, self._once, self._sleep, self._tick = patient, once, sleep, tick
        self._limit = float(config.concurrency)
        self._running, self._clean, self._cooled = 0, 0, 0.0
        self._free = asyncio.Condition()
        self._parked_until = self._next = 0.0
        self._last: deque[bool] = deque(maxlen=_LAST)
        self._done = self._failures = 0
        self._answered, self._began = False, time.monotonic()
        self.verdicts: dict[str, tuple[Verdict, str | None]] = {}
        self.stopped = ""

    async def all(self, pairs: Sequence[Asked]) -> None:
        """Ask about pairs; ``stopped`` says why some are missing."""
        todo = iter(pairs)

        async def work() -> None:
            for asked in todo:
                if self.stopped:
                    return
                try:
                    await self._one(asked)
                except Stopped as error:
                    self.stopped = self.stopped or str(error)

        workers = [asyncio.create_task(work()) for _ in range(self._config.concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()

    async def _one(self, asked: Asked) -> None:
        pair = asked.pair
        chat, most = messages(self._config, pair), self._config.max_tokens
        tries, began, repaired, doubled = 0, time.monotonic(), False, False
        while True:
            worst = 0 if self._budget is None else self._worst(pair, most)
            await self._turn(worst)
            attempt = self._ledger.begin(asked.key, self._config.rater, pair)
            outcome: Verdict | None = None
            reply: Reply | NoReply
            try:
                reply = await self._judge.ask(Question(pair, chat, most, asked.replicate))
                outcome = _read(self._config, pair, reply)
            except NoReply as error:
                reply = error
            finally:
                await self._left(worst)
            if isinstance(reply, NoReply):
                tries += reply.after <= _PARKED
                over = (
                    self._once
                    or not reply.again
                    or tries >= TRIES
                    or time.monotonic() - began > PATIENCE
                )
                failed = Verdict("transport_failed", error=reply.what)
                self._settle(attempt, failed, reply, asked, worst, final=over)
                if not self._once:
                    self._give_up(reply)
                if over:
                    return
                await self._wait(reply, tries)
                continue
            assert outcome is not None
            self._answered = True
            again = not self._once and (
                (outcome.state == "truncated" and not doubled)
                or (outcome.state == "malformed" and not repaired and reply.value is None)
            )
            self._settle(attempt, outcome, reply, asked, worst, final=not again)
            if not again:
                return
            if outcome.state == "truncated":
                doubled, most = True, most * 2
            else:
                repaired = True
                chat = [
                    *chat,
                    {"role": "assistant", "content": reply.text[:2000]},
                    {"role": "user", "content": f"Not usable: {outcome.error}. Answer again."},
                ]

    def _settle(
        self,
        attempt: int,
        outcome: Verdict,
        reply: Reply | NoReply,
        asked: Asked,
        worst: int,
        *,
        final: bool,
    ) -> None:
        usage = reply.usage if isinstance(reply, Reply) else _NOTHING
        cost = cost_nano(self._config, usage.input, usage.output, usage.cached)
        billed = True if isinstance(reply, Reply) else reply.billed
        # What may have been paid, and how much is not known, counts at its most.
        self._spent += (worst if cost is None else cost) if billed else 0
        self._ledger.settle(
            attempt,
            outcome.state,
            usage=usage,
            cost_nano=cost if billed else 0,
            billed=billed,
            reply=reply,
            error=outcome.error,
            final=(asked.key, self._config.rater, asked.pair, asked.replicate, outcome)
            if final
            else None,
        )
        if not final:
            return
        self.verdicts[asked.key] = outcome, getattr(reply, "model", None)
        self._done += 1
        self._tick(self._done, self._spent)
        self._last.append(outcome.state in USABLE)
        bad = len(self._last) - sum(self._last)
        if not self._patient and len(self._last) == _LAST and bad > _BAD * _LAST:
            raise Stopped(
                f"{bad} of the last {_LAST} pairs have no grade, the last one: {outcome.state}"
                f"{f', {outcome.error}' if outcome.error else ''}"
            )

    def _worst(self, pair: JudgePair, most: int) -> int:
        """What a request costs at most, with so many tokens of output."""
        return cost_nano(self._config, estimated_tokens(self._config, pair), most) or 0

    def _give_up(self, error: NoReply) -> None:
        """Raise Stopped if no other pair would be answered either."""
        self._failures += 1
        failures, seconds = _HOPELESS
        lost = self._failures >= failures or time.monotonic() - self._began > seconds
        if error.fatal or (lost and not self._answered):
            fix = error.fix or "check that the judge runs, and its address"
            raise Stopped(f"{error.what}\n  fix: {fix}")

    async def _turn(self, worst: int) -> None:
        """Wait for a place; raises Stopped when the budget may not be enough."""
        async with self._free:
            while self._running >= max(1, int(self._limit)) and not self.stopped:
                await self._free.wait()
            if self.stopped:
                raise Stopped(self.stopped)
            if self._budget is not None and self._spent + self._reserved + worst > self._budget:
                raise Stopped("budget")
            self._running += 1
            self._reserved += worst
        now = time.monotonic()
        pause = max(self._parked_until, self._next) - now
        if self._config.rate:
            self._next = max(self._next, now) + 1 / self._config.rate
        if pause > 0:
            await self._sleep(pause)

    async def _left(self, worst: int) -> None:
        async with self._free:
            self._running -= 1
            self._reserved -= worst
            self._clean += 1
            if self._clean >= self._limit:
                self._clean = 0
                top = float(self._config.concurrency)
                self._limit = min(top, self._limit * (1 + _FASTER))
            self._free.notify_all()

    async def _wait(self, error: NoReply, tries: int) -> None:
        now = time.monotonic()
        if error.slower and now >= self._cooled:
            self._limit, self._clean = max(1.0, self._limit * _SLOWER), 0
            self._cooled = now + _COOL
        if error.after > _PARKED:
            self._parked_until = max(self._parked_until, now + error.after)
        pause = random.uniform(0, min(30.0, 0.5 * 2**tries))  # noqa: S311 - full jitter
        await self._sleep(max(pause, error.after))


def _read(config: JudgeConfig, pair: JudgePair, reply: Reply) -> Verdict:
    """What came of a reply."""
    if reply.value is not None:
        return verdict_of(config, pair, reply.value)
    state: Outcome | None = None
    if reply.refusal:
        state = "refused"
    elif reply.finish == "content_filter":
        state = "content_filtered"
    elif reply.finish == "length":
        state = "truncated"
    if state is not None:
        return Verdict(state, error=reply.refusal[:200] or reply.finish)
    return verdict(config, pair, reply.text)


def keyed(config: JudgeConfig, pairs: Sequence[JudgePair], replicate: int = 0) -> list[Asked]:
    """Pairs with their keys, which are equal for equal questions; each pair once."""
    found = {(pair.query_id, pair.doc_id, pair.probe): pair for pair in pairs}
    return [Asked(key(config, pair, replicate), pair, replicate) for pair in found.values()]
