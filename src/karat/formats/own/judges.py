"""``[judge.NAME]`` of ``karat.toml``: machine judges."""

from __future__ import annotations

import math
import shlex
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from karat.errors import UsageError
from karat.formats import toml
from karat.formats.own._model_prices import model_prices
from karat.formats.own.engines import Declared, declared, revealed, revealed_headers
from karat.formats.own.workspace import find_workspace
from karat.tables.golden.machine_judges import KINDS, JudgeConfig, Prices
from karat.tables.schema import read_scale

_KEYS = sorted({f.name for f in fields(JudgeConfig)} - {"name", "root", "grades"} | {"scale"})
_RESPONSES = get_args(get_type_hints(JudgeConfig)["response"])
_NEEDED = {"chat": ("base_url", "model"), "command": ("command",), "python": ("function",)}


def read_judges(start: Path) -> dict[str, JudgeConfig]:
    """The judges declared in the ``karat.toml`` of a folder or the nearest parent."""
    path = find_workspace(start)
    return {
        name: _Declared(name, "judge", table, path.resolve().parent).judge()
        for name, table in toml.read(path).inner("judge", _KEYS).items()
    }


def read_judge(name: str, start: Path) -> JudgeConfig:
    """One of them; raises UsageError with the nearest name if it is not declared."""
    return declared(read_judges(start), name, "judge")


def with_key(config: JudgeConfig) -> JudgeConfig:
    """The declaration with its key and headers read from the environment and from files."""
    key = None if config.api_key is None else revealed(config, config.api_key, "api_key")
    return replace(config, api_key=key, headers=revealed_headers(config))


class _Declared(Declared):
    """The values of one ``[judge.NAME]``."""

    def judge(self) -> JudgeConfig:
        kind = self._kind(KINDS)
        for key in _NEEDED[kind]:
            if key not in self.values:
                raise self._wrong("", f"no {key}", f'{key} = "…"')
        seed = self._optional("seed", 0, 2**63)
        api_key = self.values.get("api_key")
        if isinstance(api_key, str):
            raise self._wrong(
                "api_key",
                "api_key is a secret, which does not belong in this file",
                'api_key = { env = "JUDGE_API_KEY" }',
            )
        return JudgeConfig(
            name=self.name,
            kind=kind,
            root=self.root,
            api_key=None if api_key is None else self._secret("api_key", api_key),
            headers=self._headers(),
            command=self._command(),
            template=self._instructions(),
            grades=self._grades(),
            temperature=self._temperature(),
            max_tokens=self._count("max_tokens", 512, 1_000_000),
            response=self._response(),
            prices=self._prices(kind),
            concurrency=self._count("concurrency", 20, 1000),
            timeout=self._number("timeout", 60, 0.001, 3600),
            characters=self._count("characters", 8000, 10_000_000),
            kappa=self._number("kappa", 0.4, -1, 1),
            base_url=self._text("base_url"),
            model=self._text("model"),
            function=self._text("function"),
            reasoning_effort=self._text("reasoning_effort"),
            family=self._text("family"),
            ca=self._text("ca"),
            top_p=self._optional("top_p", 0, 1),
            rate=self._optional("rate", 0.001, 1_000_000),
            seed=None if seed is None else int(seed),
        )

    def _optional(self, key: str, low: float, high: float) -> float | None:
        if key not in self.values:
            return None
        return self._number(key, 0, low, high, whole=key == "seed")

    def _command(self) -> tuple[str, ...]:
        value = self.values.get("command", [])
        if isinstance(value, str):
            return tuple(shlex.split(value))
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(
                "command", f"command is {value!r}, not a list", 'command = ["python", "judge.py"]'
            )
        return tuple(value)

    def _instructions(self) -> str | None:
        name = self._text("template")
        if not name:
            return None
        try:
            return (self.root / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise self._wrong(
                "template", f"{name} cannot be read: {error}", "a text file next to karat.toml"
            ) from None

    def _grades(self) -> tuple[float, ...]:
        """Whole steps of a scale, or the grades themselves."""
        value: Any = self.values.get("scale", "0-3")
        if isinstance(value, list) and len(value) > 1:
            numbers = [v for v in value if isinstance(v, int | float) and math.isfinite(v)]
            if len(numbers) == len(value) == len(set(value)) and min(numbers) >= 0:
                return tuple(sorted(float(v) for v in numbers))
        try:
            low, high = read_scale(value)
        except UsageError as error:
            raise self._wrong("scale", f"scale: {error.what}", 'scale = "0-3"') from None
        return tuple(low + step for step in range(int(high - low) + 1))

    def _temperature(self) -> float | None:
        """Some models allow none: ``temperature = "default"``."""
        if self.values.get("temperature") == "default":
            return None
        return self._number("temperature", 0, 0, 2)

    def _response(self) -> Any:
        value = self.values.get("response", _RESPONSES[0])
        if value not in _RESPONSES:
            raise self._wrong(
                "response",
                f"response is {value!r}",
                f"one of {', '.join(_RESPONSES)}",
            )
        return value

    def _prices(self, kind: str) -> Prices:
        table = self._table("prices")
        known = [f.name for f in fields(Prices) if f.name != "source"]
        for name, value in table.items():
            self._known("prices", name, known, "price")
            if type(value) not in (int, float) or not 0 <= value < math.inf:
                raise self._wrong(
                    "prices",
                    f"prices.{name} is {value!r}, not dollars per million tokens",
                    "prices = { input = 0.15, output = 0.6 }",
                )
        given: dict[str, Any] = {name: float(value) for name, value in table.items()}
        if kind == "chat" and not given.keys() - {"batch"}:
            found = model_prices(self._text("base_url"), self._text("model"))
            return replace(found, **given)
        return Prices(**given)
