"""Computing beside requests: once, few at a time, never without end, and errors are told."""

from __future__ import annotations

import threading

import pytest

from karat.errors import InputError, KaratError
from karat.web.framework.jobs import Busy, JobQueue


def test_something_is_computed_once_however_many_ask() -> None:
    computing, gate, done = JobQueue(), threading.Event(), []

    def work() -> None:
        gate.wait(5)
        done.append(1)

    assert not computing.run("a", work, 0)
    assert not computing.run("a", work, 0)
    gate.set()
    assert computing.run("a", work, 5)
    assert len(done) in {1, 2}  # the second only if it came after the first had ended


def test_few_run_at_once_few_wait_and_more_are_refused() -> None:
    computing, gate = JobQueue(at_once=2, most=16), threading.Event()
    lock, now, most, done = threading.Lock(), [0], [0], threading.Semaphore(0)

    def work() -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        gate.wait(5)
        with lock:
            now[0] -= 1
        done.release()

    before = threading.active_count()
    for key in range(18):
        assert not computing.run(key, work, 0)
    with pytest.raises(Busy) as caught:
        computing.run("one more", work, 0)
    assert caught.value.status_code == 503
    assert threading.active_count() - before <= 2
    assert not computing.run(17, work, 0)  # what waits already is no more
    gate.set()
    assert all(done.acquire(timeout=5) for _ in range(18))
    assert most[0] == 2
    assert computing.run("one more", lambda: None, 5)


def test_a_place_is_kept_for_what_is_about_to_be_asked() -> None:
    computing, gate = JobQueue(at_once=1, most=1), threading.Event()
    assert not computing.run("a", gate.wait, 0)
    with computing.place() as place:
        with pytest.raises(Busy):
            computing.run("b", gate.wait, 0)
        with pytest.raises(Busy), computing.place():
            pytest.fail("there is one place, and it is kept")
        assert not computing.run("c", lambda: None, 0, place=place)
    with pytest.raises(Busy), computing.place():
        pytest.fail('"c" waits in it')
    gate.set()


def test_a_place_is_free_again_if_it_was_not_taken() -> None:
    computing, gate = JobQueue(at_once=1, most=1), threading.Event()
    assert not computing.run("a", gate.wait, 0)
    with pytest.raises(ZeroDivisionError), computing.place():
        1 / 0  # noqa: B018 - the store refused it, for example
    with computing.place() as place:
        assert not computing.run("a", gate.wait, 0, place=place)  # it is computed already
    assert not computing.run("b", lambda: None, 0)
    gate.set()


def test_an_error_is_told_for_a_while_and_then_it_is_tried_again() -> None:
    now, tries = [0.0], []
    computing = JobQueue(clock=lambda: now[0])

    def work() -> None:
        tries.append(1)
        raise InputError("broken")

    for _ in range(3):
        with pytest.raises(InputError, match="broken") as caught:
            computing.run("a", work, 5)
    assert len(tries) == 1
    assert caught.value.__context__ is None
    now[0] = 60.0
    with pytest.raises(InputError):
        computing.run("a", work, 5)
    assert len(tries) == 2
    for _ in range(2):  # what is not to be remembered
        with pytest.raises(InputError):
            computing.run("b", work, 5, remembered_s=0)
    assert len(tries) == 4


def test_a_mistake_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        raise InputError("broken", fix="write it again")

    with caplog.at_level("INFO"), pytest.raises(InputError):
        JobQueue().run("a", work, 5)
    assert caplog.messages == ["computing a: broken; fix: write it again"]


def test_what_nobody_expected_is_told_without_its_words() -> None:
    with pytest.raises(KaratError, match="bug in karat") as caught:
        JobQueue().run("a", lambda: {}["x"], 5)
    assert "KeyError" not in str(caught.value)
