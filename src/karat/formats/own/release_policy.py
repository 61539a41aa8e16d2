"""Policies of releases, as TOML."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from karat.errors import InputError
from karat.formats import toml
from karat.formats.own.engines import headers_of, secret_or_text
from karat.formats.own.experiments import read_guards, read_metric
from karat.formats.own.policy import read_policy
from karat.formats.own.shadow_log import LIMITS, limits_of
from karat.online.metrics import registry
from karat.online.rules import DAY, duration, margin
from karat.tables.engines import Secret
from karat.tables.release.pipeline import (
    AB,
    OFFLINE,
    SHADOW,
    Promise,
    ReleasePolicy,
    Signal,
    Stage,
    SwitchConfig,
)

_TIMES = ("least", "longest", "fresh", "approvers")
_PROMISE = (
    "measure", "gain", "slice", "latency_ms", "memory", "labelling", "attention", "override",
)  # fmt: skip
_KEYS = {
    "release": ("coverage",),
    "offline": ("gate", *_TIMES),
    "shadow": ("log", *LIMITS, *_TIMES),
    "ab": ("share", "control", "candidate", "decide", "window", "trigger", "exposures",
           "non_inferior", *_TIMES),
    "guard": None,
    "ramp": ("steps", "holdback", *_TIMES),
    "feed": ("silent", "give_up"),
    "watch": ("for",),
    "promise": _PROMISE,
    "signal": ("metric", "limit", "direction", "slice", "window"),
    "switch": ("kind", "path", "url", "secret", "headers", "command", "alias", "baseline_index",
               "candidate_index", "timeout"),
}  # fmt: skip
_NEEDED = {
    "file": ("path",),
    "webhook": ("url",),
    "command": ("command",),
    "alias": ("url", "alias", "baseline_index", "candidate_index"),
}


@dataclass(frozen=True)
class ReleaseFile:
    """A policy, and what it does not promise yet."""

    policy: ReleasePolicy
    missing: tuple[str, ...]  # keys of ``[promise]`` and ``[signal]``


def read_release(path: str | Path) -> ReleaseFile:
    """The policy of a release.

    Raises:
        InputError: it is not a policy, with file, line and fix.
    """
    table = toml.read(path).check(_KEYS)
    if "\\u0000" in json.dumps(table.content, default=str):
        raise table.wrong("a text has the character NUL", "delete it")
    gate = table.text(OFFLINE, "gate", "gate.toml")
    place = Path(path).parent / gate
    read_policy(place)  # it has to be a policy of a gate
    missing = [key for key in _PROMISE if table.value("promise", key) is None]
    missing += [
        f"signal.{key}" for key in ("metric", "limit", "direction")
        if table.value("signal", key) is None
    ]  # fmt: skip
    policy = ReleasePolicy(
        stages=tuple(_stages(table)),
        gate=toml.read(place).content,
        shadow=limits_of(table),
        shadow_log=table.text_or_none(SHADOW, "log", "shadow/candidate.jsonl") or "",
        decide=tuple(read_metric(table, AB, name) for name in table.texts(AB, "decide", ["SAT"])),
        guards=read_guards(table),
        non_inferior=table.text_or_none(AB, "non_inferior", "half the price") or "",
        control_arm=table.text_or_none(AB, "control", "a") or "",
        candidate_arm=table.text_or_none(AB, "candidate", "b") or "",
        window_us=None
        if table.value(AB, "window") is None
        else table.read(AB, "window", "7d", duration),
        trigger=table.text_or_none(AB, "trigger", "differs"),
        exposures=_beside(path, table.text_or_none(AB, "exposures", "exposures.csv")),
        silent_us=table.read("feed", "silent", "30h", duration),
        give_up_us=table.read("feed", "give_up", "48h", duration),
        watch_us=table.read("watch", "for", "14d", duration),
        coverage=table.number("release", "coverage", 0.95, 0, 1),
        promise=_promise(table),
        switch=_switch(table),
    )
    _refuse_unguarded(table, policy)
    return ReleaseFile(policy, tuple(missing))


def _beside(path: str | Path, name: str | None) -> str | None:
    return None if name is None else str((Path(path).parent / name).resolve())


def _refuse_unguarded(table: toml.Tables, policy: ReleasePolicy) -> None:
    names = [guard.metric for guard in policy.guards]
    both = [name for name in names if name in policy.decide or names.count(name) > 1]
    if both:
        raise table.wrong(
            f"{both[0]} decides, or is a guardrail twice", "a metric has one role: leave one out"
        )
    signal = policy.promise.signal.metric
    for name in (*policy.decide, *names, *([signal] if signal else [])):
        if registry.find(name).direction == "none":
            raise table.wrong(
                f"{name} has no direction: neither more nor less of it is better",
                "karat online metrics lists the directions",
            )
    if not policy.decide:
        raise table.wrong("[ab] decide names no metric", 'decide = ["SAT"]')
    if not policy.guards:
        raise table.wrong("the policy has no guardrail", "[guard] with ErrorRate = 0.002, say")
    if policy.switch.kind == "alias":
        partly = [stage.name for stage in policy.stages if 0 < stage.share < 1]
        if partly:
            raise table.wrong(
                f"an alias moves all users at once, and {partly[0]} moves some",
                "[ab] share = 0, with assignment by another tool, and [ramp] steps = [100], "
                "holdback = 0",
            )


def _stages(table: toml.Tables) -> list[Stage]:
    """The stages in order; the control of a step is as large as the share, where it can be."""
    share = _share(table, AB, "share", 0.05)
    holdback = _share(table, "ramp", "holdback", 0.05)
    steps = table.value("ramp", "steps", [25, 50, 100])
    whole = isinstance(steps, list) and all(type(step) is int and 0 < step <= 100 for step in steps)
    if not whole or not steps or steps != sorted(set(steps)) or steps[-1] != 100:
        raise table.invalid(
            "ramp", "steps", "rising percentages up to 100", "steps = [25, 50, 100]"
        )
    if holdback > 0.5 or (len(steps) > 1 and 1 - holdback <= steps[-2] / 100):
        fix = 'holdback = "5%": the last step has more users than the one before'
        raise table.invalid("ramp", "holdback", "at most half, and less than what is left", fix)
    if share > 0.5:
        raise table.invalid(AB, "share", "at most half of the users", 'share = "5%"')
    parts = [(OFFLINE, OFFLINE, 0.0, 0.0), (SHADOW, SHADOW, 0.0, 0.0), (AB, AB, share, share)]
    for step in steps:
        size = step / 100 if step < 100 else 1 - holdback
        parts.append(("ramp", f"ramp_{step}", size, min(size, 1 - size)))
    return [_stage(table, *part) for part in parts]


def _stage(table: toml.Tables, section: str, name: str, share: float, control: float) -> Stage:
    usual = {OFFLINE: ("", "", "7d"), SHADOW: ("", "", "3d"), AB: ("7d", "28d", "2d")}
    least, longest, fresh = usual.get(section, ("1d", "7d", "2d"))

    def length(key: str, default: str) -> int | None:
        if table.value(section, key) is None and not default:
            return None
        return table.read(section, key, default, duration)

    shortest, most = length("least", least) or 0, length("longest", longest)
    if most is not None and section in {AB, "ramp"} and most % (7 * DAY):
        raise table.invalid(section, "longest", "whole weeks", 'longest = "14d"')
    if most is not None and shortest > most:
        raise table.invalid(section, "least", "at most longest", f'least = "{least or "1d"}"')
    return Stage(
        name,
        share,
        round(control, 12),
        shortest,
        most,
        length("fresh", fresh) or DAY,
        table.texts(section, "approvers"),
    )


def _share(table: toml.Tables, section: str, key: str, default: float) -> float:
    value = table.value(section, key, default)
    good = isinstance(value, int | float | str) and not isinstance(value, bool)
    read = margin(str(value), 100.0000001) if good else None
    size = -1.0 if read is None else read[0]
    if not 0 <= size <= 1:
        raise table.invalid(section, key, "a share of all users", f'{key} = "5%"')
    return size


def _promise(table: toml.Tables) -> Promise:
    direction = table.choice("signal", "direction", ("above", "below")) or "above"
    metric = table.text_or_none("signal", "metric", "ZeroResults")
    part = table.value("signal", "slice", {})
    if not isinstance(part, dict) or not all(isinstance(value, str) for value in part.values()):
        raise table.invalid("signal", "slice", "a table", 'slice = { class = "howto" }')
    signal = Signal(
        "" if metric is None else read_metric(table, "signal", metric),
        table.number("signal", "limit", 0, -1e15, 1e15),
        "above" if direction == "above" else "below",
        part,
        f"{table.read('signal', 'window', '1d', duration) // DAY or 1}d",
    )
    words = {
        key: table.text_or_none("promise", key, "…") or ""
        for key in ("measure", "slice", "memory", "labelling", "attention")
    }
    return Promise(
        gain=table.number("promise", "gain", 0, -1e15, 1e15),
        latency_ms=table.number("promise", "latency_ms", 0, -1e9, 1e9),
        signal=signal,
        override=table.texts("promise", "override"),
        **words,
    )


def _switch(table: toml.Tables) -> SwitchConfig:
    kind = table.choice("switch", "kind", tuple(_NEEDED), "kind of switch")
    if kind is None:
        raise table.wrong(
            "nothing moves the traffic", '[switch] kind = "file", path = "rollout.json"'
        )
    for key in _NEEDED[kind]:
        if not table.value("switch", key):
            raise table.wrong(f"[switch] has no {key}", f'{key} = "…"')
    headers, secret = table.value("switch", "headers", {}), table.value("switch", "secret")

    def wrong(key: str, what: str, fix: str | None = None) -> InputError:
        return table.wrong(f"[switch] {what}", fix, toml.line_of(table.data, "switch", key))

    if isinstance(secret, str) or not isinstance(headers, dict):
        key = "secret" if isinstance(secret, str) else "headers"
        raise wrong(key, f"{key} does not belong in this file", f'{key} = {{ env = "NAME" }}')
    signed = None if secret is None else secret_or_text("secret", secret, wrong)
    return SwitchConfig(
        kind=kind,  # type: ignore[arg-type]  # one of the choices
        path=table.text_or_none("switch", "path", "rollout.json") or "",
        url=secret_or_text("url", table.value("switch", "url", ""), wrong),
        secret=signed if isinstance(signed, Secret) else None,
        headers=headers_of(headers, wrong),
        command=table.texts("switch", "command"),
        alias=table.text_or_none("switch", "alias", "search") or "",
        baseline_index=table.text_or_none("switch", "baseline_index", "docs-1") or "",
        candidate_index=table.text_or_none("switch", "candidate_index", "docs-2") or "",
        timeout=table.number("switch", "timeout", 10, 0.1, 120),
    )
