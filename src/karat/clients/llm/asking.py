"""What every kind of judge returns, and how it fails."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

from karat.tables.golden.machine_judges import JudgeConfig, JudgePair, Usage

PAIR_HEADER = "karat-pair"
"""Names the pair in a request: query, document and replicate, percent-encoded. For test servers."""

_UNKNOWN = Usage()


@dataclass(frozen=True, slots=True)
class Question:
    """One request about one pair."""

    pair: JudgePair
    chat: list[dict[str, str]]  # the messages
    max_tokens: int
    replicate: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge answered."""

    text: str = ""  # JSON, or text that contains it
    value: dict[str, Any] | None = None  # the same, where it is an object already
    refusal: str = ""
    finish: str = "stop"  # stop | length | content_filter
    usage: Usage = _UNKNOWN
    model: str | None = None  # as returned
    fingerprint: str | None = None
    request_id: str | None = None
    http: int | None = None


def read_completion(answer: Any, number: str | None, status: int) -> Reply:
    """The reply in a chat completion; ``number`` is that of the request, if it has another one.

    Raises:
        ValueError: not a chat completion.
    """
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        usage = answer.get("usage") or {}
        return Reply(
            text=message.get("content") or "",
            refusal=message.get("refusal") or "",
            finish=choice.get("finish_reason") or "stop",
            usage=Usage(
                usage.get("prompt_tokens"),
                (usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
                usage.get("completion_tokens"),
                (usage.get("completion_tokens_details") or {}).get("reasoning_tokens"),
            ),
            model=answer.get("model"),
            fingerprint=answer.get("system_fingerprint"),
            request_id=number or answer.get("id"),
            http=status,
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError("not a chat completion") from None


@dataclass(eq=False)
class NoReply(Exception):
    """A judge did not answer."""

    what: str
    _: KW_ONLY
    again: bool = False  # whether another try could help
    after: float = 0.0  # seconds that it asks to wait
    fatal: bool = False  # whether no other pair would be answered either; with `fix`
    billed: bool = False  # whether the request may have been paid
    slower: bool = False  # whether it asks for fewer requests
    http: int | None = None  # status of its answer; None without one
    request_id: str | None = None  # its number at the API
    fix: str = ""


class Judge(Protocol):
    """A judge that can be asked."""

    async def ask(self, question: Question) -> Reply:
        """Ask about one pair; raises NoReply."""

    async def close(self) -> None:
        """End its connections, or its program."""


def open_judge(config: JudgeConfig) -> Judge:
    """Open a declared judge, with its secrets read.

    Raises:
        UsageError: a function that cannot be loaded, or an address that is not one.
        MissingExtra: httpx2 is not installed.
    """
    if config.kind == "chat":
        from karat.clients.llm._chat import Chat

        return Chat(config)
    from karat.clients.llm._local import Function, Program

    return Program(config) if config.kind == "command" else Function(config)
