"""karat's plugin for pytest: the fixtures ``karat_gate`` and ``karat_expect``.

pytest loads this file at every start, in every project of an environment that holds karat. So it
imports nothing but pytest: the rest of karat is loaded when a test asks for it.

PYTEST_DONT_REWRITE: it asserts nothing.
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
    "karat_golden": "golden set that karat_gate asks, unless a test names one",
    "karat_policy": "policy (TOML) that karat_gate holds a search against, likewise",
    "karat_baseline": "run or saved baseline that karat_gate compares with, likewise",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Name the settings of the ini file; their paths are relative to it."""
    for name, about in _FILES.items():
        parser.addini(name, f"karat: the {about}", default=None)


@pytest.fixture(scope="session")
def karat_gate(pytestconfig: pytest.Config) -> KaratGate:
    """Fail the test if a search got worse than a policy allows: ``karat_gate(search)``."""
    return KaratGate(pytestconfig)


@pytest.fixture(scope="session")
def karat_expect() -> Callable[[Callable[[str], Any], str], KaratExpect]:
    """Say which document must stand where: ``karat_expect(search, "query").top(3, "a", …)``."""
    return KaratExpect


class KaratGate:
    """Holds a search against a policy, over all queries of a golden set."""

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
        """Ask the search every query, and fail the test unless the policy lets it pass.

        Args:
            search: Takes the text of a query and returns documents, best first, as
                ``karat.benchmark`` takes it; may be async. Or a run, made before.
            golden: The golden set, as ``karat.benchmark`` takes it; ``karat_golden`` of the ini
                file if None.
            policy: The policy, as ``karat.gate`` takes it; ``karat_policy`` if None.
            baseline: A run, or a saved baseline; ``karat_baseline`` if None. A policy without
                drops needs none.
            cannot_tell: What becomes of the test if the evidence does not suffice: ``fail``,
                ``skip``, or ``pass`` with a warning. Other verdicts but ``pass`` always fail.
            concurrency: Calls at once.
            timeout: Seconds for each call.
            retries: Further tries after an error or a timeout.
            warmup: So many queries are asked before, and not counted.
            **rules: ``rel``, ``complete``, ``depth``, ``documents``, ``collapse``, ``scale``, as
                ``karat.gate`` takes them.

        Returns:
            What the policy says, if it lets the search pass.

        Raises:
            AssertionError: it does not.
            KaratError: golden set, policy or baseline cannot be used.
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
            for said in filter(None, (of_known(found), of_order(found))):
                warnings.warn(pytest.PytestWarning(said), stacklevel=2)
        return found

    def _file(self, name: str, given: Any, *, needed: bool = False) -> Any:
        """What a test gave, or else the file that the ini file names."""
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
        here = Path.cwd()  # messages name it as briefly as can be
        return path.relative_to(here) if path.is_relative_to(here) else path

    def __repr__(self) -> str:
        return "karat_gate"


class KaratExpect:
    """Expectations of one query; each must be kept, or the test fails there and then.

    Args:
        search: Takes the text of a query and returns documents, best first, as
            ``karat.benchmark`` takes it; may be async. It is asked once.
        query: The text of the query.

    Attributes:
        answer: What the search returned: ``answer.doc_ids``, best first.

    Raises:
        AssertionError: the search raised an error, or returned what is no ranking.
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
            AssertionError: it is not there.
        """
        __tracebackhide__ = True
        return self._expect("top", k, doc_id, because=because)

    def absent(self, doc_id: str | int, *, within: int | None = None, because: str) -> KaratExpect:
        """Expect a document not to be returned, or not in the top ``within``.

        Raises:
            AssertionError: it is there; or the search returned nothing at all, which says nothing.
        """
        __tracebackhide__ = True
        return self._expect("absent", doc_id, within=within, because=because)

    def before(self, doc_id: str | int, other: str | int, *, because: str) -> KaratExpect:
        """Expect a document before another, which need not be returned.

        Raises:
            AssertionError: it is behind the other, or not returned.
        """
        __tracebackhide__ = True
        return self._expect("before", doc_id, other, because=because)

    def nothing(self, *, because: str) -> KaratExpect:
        """Expect that no document is returned: the query has no right answer.

        Raises:
            AssertionError: some are.
        """
        __tracebackhide__ = True
        return self._expect("nothing", because=because)

    def _expect(self, what: str, *about: Any, **said: Any) -> KaratExpect:
        __tracebackhide__ = True
        from karat.errors import KaratError
        from karat.release import expectations
        from karat.reports.release.assertion import of_expectation

        try:
            broken: Broken | None = getattr(expectations, what)(self.answer, *about, **said)
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
