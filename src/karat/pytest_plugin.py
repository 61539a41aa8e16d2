"""karat's plugin for pytest: the fixtures ``karat_gate`` and ``karat_expect``.

pytest loads this module at every start, in every project that has karat installed. So it imports
only pytest; the rest of karat is loaded when a test uses a fixture.

PYTEST_DONT_REWRITE: it has no assertions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from karat.release.expectations import Answer, Broken
    from karat.tables.release.gate import Gate

_FILES = {
    "karat_golden": "default golden set of karat_gate",
    "karat_policy": "default policy (TOML) of karat_gate",
    "karat_baseline": "default baseline of karat_gate: a run or a saved baseline",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the ini settings; their paths are relative to the ini file."""
    for name, about in _FILES.items():
        parser.addini(name, f"karat: the {about}", default=None)


@pytest.fixture(scope="session")
def karat_gate(pytestconfig: pytest.Config) -> KaratGate:
    """Fail the test if a search got worse than a policy allows: ``karat_gate(search)``."""
    return KaratGate(pytestconfig)


@pytest.fixture(scope="session")
def karat_expect() -> Callable[[Callable[[str], Any], str], KaratExpect]:
    """Expect documents at certain ranks: ``karat_expect(search, "query").top(3, "a", …)``."""
    return KaratExpect


class KaratGate:
    """Checks a search against a policy, over all queries of a golden set."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def __call__(
        self,
        search: Any,
        golden: Any = None,
        policy: Any = None,
        baseline: Any = None,
        *,
        cannot_tell: Literal["fail", "skip", "pass"] = "fail",
        concurrency: int = 1,
        timeout: float | None = None,
        retries: int = 0,
        warmup: int = 0,
        **rules: Any,
    ) -> Gate:
        """Run every query against the search, and fail the test unless the policy passes.

        Args:
            search: Takes the text of a query and returns documents, best first, as
                ``karat.benchmark`` takes it; may be async. Or an existing run.
            golden: The golden set, as ``karat.benchmark`` takes it; ``karat_golden`` of the ini
                file if None.
            policy: The policy, as ``karat.gate`` takes it; ``karat_policy`` if None.
            baseline: A run, or a saved baseline; ``karat_baseline`` if None. A policy without
                rules about drops needs none.
            cannot_tell: Outcome of the test if the evidence is insufficient: ``fail``, ``skip``,
                or ``pass`` with a warning. All other verdicts except ``pass`` fail.
            concurrency: Number of concurrent calls.
            timeout: Seconds for each call; None for no limit.
            retries: Retries after an error or a timeout.
            warmup: Number of queries asked beforehand, not counted.
            **rules: ``rel``, ``complete``, ``depth``, ``documents``, ``collapse``, ``scale``, as
                ``karat.gate`` takes them.

        Returns:
            The result of the gate, if the search passes.

        Raises:
            AssertionError: The search does not pass.
            KaratError: The golden set, policy or baseline cannot be used.
        """
        __tracebackhide__ = True
        from karat.errors import KaratError, UsageError
        from karat.reports.release.assertion import of_gate, of_known, of_order
        from karat.workflows.release.expectations import hold

        asking = {"concurrency": concurrency, "timeout": timeout}
        asking |= {"retries": retries, "warmup": warmup}
        try:
            if cannot_tell not in ("fail", "skip", "pass"):
                raise UsageError(f"cannot_tell is {cannot_tell!r}", nearest=["fail, skip or pass"])
            _refuse_unknown(rules)
            found = hold(
                search,
                self._file("karat_golden", golden, needed=True),
                self._file("karat_policy", policy, needed=True),
                self._file("karat_baseline", baseline),
                asking=asking,
                rules=rules,
            )
        except KaratError as error:
            raise error.with_traceback(None) from None
        if found.verdict != "pass":
            message = of_gate(found)
            if found.verdict != "cannot_tell" or cannot_tell == "fail":
                raise AssertionError(message)
            if cannot_tell == "skip":
                pytest.skip(message)
            warnings.warn(pytest.PytestWarning(message), stacklevel=2)
        else:
            for warning in filter(None, (of_known(found), of_order(found))):
                warnings.warn(pytest.PytestWarning(warning), stacklevel=2)
        return found

    def _file(self, name: str, given: Any, *, needed: bool = False) -> Any:
        """The test's own value, or else the file named in the ini file."""
        if given is not None:
            return given
        named = self._config.getini(name)
        if not named:
            if not needed:
                return None
            from karat.errors import UsageError

            what = name.removeprefix("karat_")
            raise UsageError(f"no {what}", fix=f"{what}=… in the test, or {name} in pytest.ini")
        home = self._config.inipath
        path = (self._config.rootpath if home is None else home.parent) / named
        here = Path.cwd()  # short in messages
        return path.relative_to(here) if path.is_relative_to(here) else path

    def __repr__(self) -> str:
        return "karat_gate"


class KaratExpect:
    """Expectations of one query; the first that is not met fails the test.

    Args:
        search: Takes the text of a query and returns documents, best first, as
            ``karat.benchmark`` takes it; may be async. It is asked once.
        query: The text of the query.

    Attributes:
        answer: What the search returned: ``answer.doc_ids``, best first.

    Raises:
        AssertionError: The search raised an error, or did not return a ranking.
    """

    answer: Answer

    def __init__(self, search: Callable[[str], Any], query: str) -> None:
        __tracebackhide__ = True
        from karat.errors import KaratError
        from karat.reports.release.assertion import of_failure
        from karat.workflows.release.expectations import NoAnswer, answer

        try:
            self.answer = answer(search, query)
        except NoAnswer as error:
            raise AssertionError(of_failure(query, str(error))) from None
        except KaratError as error:
            raise error.with_traceback(None) from None

    def top(self, k: int, doc_id: str | int, *, because: str) -> KaratExpect:
        """Expect a document in the top k.

        Raises:
            AssertionError: It is not among them.
        """
        __tracebackhide__ = True
        return self._expect("top", k, doc_id, because=because)

    def absent(self, doc_id: str | int, *, within: int | None = None, because: str) -> KaratExpect:
        """Expect a document not to be returned, or not in the top ``within``.

        Raises:
            AssertionError: It is returned; or nothing is, which proves nothing.
        """
        __tracebackhide__ = True
        return self._expect("absent", doc_id, within=within, because=because)

    def before(self, doc_id: str | int, other: str | int, *, because: str) -> KaratExpect:
        """Expect a document before another, which need not be returned.

        Raises:
            AssertionError: It comes after the other, or is not returned.
        """
        __tracebackhide__ = True
        return self._expect("before", doc_id, other, because=because)

    def nothing(self, *, because: str) -> KaratExpect:
        """Expect that no document is returned: the query has no right answer.

        Raises:
            AssertionError: A document is returned.
        """
        __tracebackhide__ = True
        return self._expect("nothing", because=because)

    def _expect(self, name: str, *args: Any, **kwargs: Any) -> KaratExpect:
        __tracebackhide__ = True
        from karat.errors import KaratError
        from karat.release import expectations
        from karat.reports.release.assertion import of_expectation

        try:
            broken: Broken | None = getattr(expectations, name)(self.answer, *args, **kwargs)
        except KaratError as error:
            raise error.with_traceback(None) from None
        if broken is not None:
            raise AssertionError(of_expectation(broken))
        return self


_RULES = ("rel", "complete", "depth", "documents", "collapse", "scale")
_OTHERS = ("golden", "policy", "baseline", "cannot_tell", "concurrency", "timeout", "retries")


def _refuse_unknown(rules: dict[str, Any]) -> None:
    from karat.errors import UsageError, nearest

    for name in rules:
        if name not in _RULES:
            near = nearest(name, (*_RULES, *_OTHERS, "warmup"), 1)
            raise UsageError(f"karat_gate has no argument {name!r}", nearest=near)
