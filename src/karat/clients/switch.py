"""Switches: what moves the traffic of a release, set to a rollout and read again."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote

from karat.clients import webhook
from karat.engines.search.engine import EngineError
from karat.engines.search.http import Calls, quoted
from karat.engines.secrets import secret_value
from karat.errors import InputError, KaratError, UsageError
from karat.experiments.assignment import Rollout, rollout_of, rollout_text
from karat.tables.engines import EngineConfig
from karat.tables.release.pipeline import SwitchConfig

_WHOLE = 1 - 1e-9  # a share of all users, but for rounding
_TRIES = 3
_PER_TRY, _PAUSE = 5.0, 1.0  # most seconds of a try of a webhook, and between two
_LAST = 4096  # bytes of a program's errors of which the last line is reported
_PROPERTIES = ("filter", "index_routing", "search_routing", "is_write_index", "is_hidden")


class SwitchError(KaratError):
    """The switch cannot be reached, or refused: it may be in its former state or in the new one."""


def read(
    config: SwitchConfig, root: Path, *, environment: Mapping[str, str] = os.environ
) -> Rollout | None:
    """The rollout that the switch is set to; None if it has none, or cannot be asked.

    A webhook and a command cannot be asked. An alias stores neither experiment nor salt: only the
    share of the treatment has a meaning.

    Raises:
        SwitchError: it cannot be read, or its content is damaged.
    """
    if config.kind == "file":
        return _read_file(config, root)
    if config.kind != "alias":
        return None
    try:
        with _Alias(config, root, environment) as alias:
            indexes = set(alias.indexes())
    except EngineError as error:
        raise SwitchError(f"alias {config.alias}: {error.what}", fix=error.fix) from None
    if len(indexes) != 1 or not indexes <= {config.baseline_index, config.candidate_index}:
        return None
    share = 1.0 if config.candidate_index in indexes else 0.0
    return Rollout(config.alias, "", treatment_share=share)


def put(
    config: SwitchConfig,
    root: Path,
    rollout: Rollout,
    *,
    environment: Mapping[str, str] = os.environ,
    inherit: Sequence[int] = (),
) -> None:
    """Set the switch; on return it is in force. Setting it again changes nothing.

    Args:
        config: The switch.
        root: Folder of ``karat.toml``; paths and programs are relative to it.
        rollout: The shares of traffic.
        environment: Where secrets are; also the environment of a command.
        inherit: Descriptors that a command gets too: a lock, which is then not released before the
            command has ended, even if this process is killed.

    Raises:
        SwitchError: it cannot be reached, or refuses.
        UsageError: it cannot represent the rollout, or a secret is missing.
    """
    if config.kind == "file":
        _write_file(config, root, rollout)
    elif config.kind == "webhook":
        _post(config, root, rollout, environment)
    elif config.kind == "command":
        _run(config, root, rollout, environment, inherit)
    else:
        _move(config, root, rollout, environment)


def longest(config: SwitchConfig) -> float:
    """Seconds that setting the switch takes at most, roughly."""
    if config.kind == "webhook":
        return _TRIES * (min(config.timeout, _PER_TRY) + _PAUSE)
    if config.kind == "alias":
        return _TRIES * (3 * config.timeout + _PAUSE)
    return config.timeout + 1


def _read_file(config: SwitchConfig, root: Path) -> Rollout | None:
    try:
        return rollout_of((root / config.path).read_bytes(), config.path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SwitchError(f"{config.path} cannot be read: {error.strerror}") from None
    except InputError as error:
        raise SwitchError(
            f"{config.path}: {error.what}", fix="karat release run writes the file again"
        ) from None


def _write_file(config: SwitchConfig, root: Path, rollout: Rollout) -> None:
    """Replace the rollout file; a power cut leaves the old one or the new one."""
    target = (root / config.path).resolve()  # follow links
    part = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as stream:
            stream.write(rollout_text(rollout).encode("utf-8", "replace"))
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode & 0o7777)
        part.replace(target)
        if sys.platform != "win32":  # where folders cannot be opened
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise SwitchError(
            f"{config.path} cannot be written: {error.strerror}",
            fix=f"check the folder {target.parent}: it has to exist, be writable and have space",
        ) from None


def _post(
    config: SwitchConfig, root: Path, rollout: Rollout, environment: Mapping[str, str]
) -> None:
    url = secret_value(config.url, "[switch] url", root, environment)
    secret = None
    if config.secret is not None:
        secret = secret_value(config.secret, "[switch] secret", root, environment)
        if not secret:
            raise UsageError(f"[switch] secret {config.secret} is empty")
    # The time makes two posts of one rollout two events, and lets a receiver ignore one that
    # arrives after a later one.
    event = asdict(rollout) | {"sent_us": time.time_ns() // 1000}
    delivery = webhook.post(
        url,
        event,
        secret=secret,
        timeout=min(config.timeout, _PER_TRY),
        tries=_TRIES,
        sleep=lambda seconds: time.sleep(min(seconds, _PAUSE)),
    )
    if not delivery.delivered:
        tries = "" if delivery.tries == 1 else f", after {delivery.tries} tries"
        raise SwitchError(
            f"the webhook did not accept the rollout: {delivery.reason}{tries}",
            fix="check that its receiver runs, and [switch] url and secret",
        )


def _run(
    config: SwitchConfig,
    root: Path,
    rollout: Rollout,
    environment: Mapping[str, str],
    inherit: Sequence[int],
) -> None:
    """Run the program; when it has ended, so have the processes that it started."""
    name = config.command[0]
    windows = sys.platform == "win32"
    try:
        process = subprocess.Popen(  # noqa: S603 - the program that the policy declares, no shell
            config.command,
            cwd=root,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=not windows,
            pass_fds=() if windows else tuple(inherit),
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SwitchError(
            f"{name} cannot be started: {reason}",
            fix="command = [PROGRAM, ARGUMENT, …], with a program that is on PATH",
        ) from None
    errors, code = bytearray(), None
    try:
        assert process.stdin is not None and process.stderr is not None  # noqa: PT018 - pipes
        reading = threading.Thread(target=_collect, args=(process.stderr, errors), daemon=True)
        reading.start()
        with suppress(OSError), process.stdin:  # it may end without reading
            process.stdin.write(rollout_text(rollout).encode("utf-8", "replace"))
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(config.timeout)
    finally:
        _end(process)
    reading.join(1)  # a process that left the session may never close the pipe
    if code == 0:
        return
    lines = bytes(errors).splitlines() or [b""]
    last = quoted(next((line for line in reversed(lines) if line.strip()), b""))
    if code is None:
        what = f"{name} did not end within {config.timeout:g} s, and was killed"
    else:
        what = f"{name} " + (f"ended with {code}" if code > 0 else f"was killed by signal {-code}")
    fix = f"run it by hand, with a rollout as JSON on standard input: {name}"
    raise SwitchError(what + (f": {last}" if last else ""), fix=fix)


def _collect(stream: IO[bytes], errors: bytearray) -> None:
    with stream:
        while part := os.read(stream.fileno(), 65536):
            errors += part
            del errors[:-_LAST]


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _move(
    config: SwitchConfig, root: Path, rollout: Rollout, environment: Mapping[str, str]
) -> None:
    import tenacity

    share = 0.0 if rollout.stopped else rollout.treatment_share
    if 1e-9 < share < _WHOLE:
        raise UsageError(
            f"an alias moves all users at once: {config.alias} cannot give {share:.3g} of them the "
            "candidate",
            fix="use a file, webhook or command as the switch, or stages without shares",
        )
    index = config.candidate_index if share >= _WHOLE else config.baseline_index

    def again(error: BaseException) -> bool:
        return isinstance(error, EngineError) and error.again

    patient = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_TRIES),
        wait=tenacity.wait_fixed(_PAUSE / 2),
        retry=tenacity.retry_if_exception(again),
        reraise=True,
    )
    try:
        with _Alias(config, root, environment) as alias:
            patient(alias.point, index, others=rollout.stopped)
    except EngineError as error:
        raise SwitchError(f"alias {config.alias}: {error.what}", fix=error.fix) from None


class _Address(EngineConfig):
    """A search engine with an alias."""

    @property
    def where(self) -> str:
        return "[switch]"


class _Alias:
    """An alias of Elasticsearch or OpenSearch."""

    def __init__(self, config: SwitchConfig, root: Path, environment: Mapping[str, str]) -> None:
        def read(value: Any, key: str) -> str:
            return secret_value(value, f"[switch] {key}", root, environment)

        self._config = config
        self._calls = Calls(
            _Address(
                name="switch",
                kind="opensearch",
                root=root,
                depth=1,
                url=read(config.url, "url"),
                headers={key: read(v, f"headers.{key}") for key, v in config.headers.items()},
                timeout=config.timeout,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._calls.close()

    def indexes(self) -> dict[str, dict[str, Any]]:
        """The indexes that it points to, each with the properties of the alias there."""
        name = self._config.alias
        url = f"{self._calls.base}/_alias/{quote(name, safe='')}"
        reply = self._calls.json("GET", url, missing=True)
        try:
            return {index: dict(there["aliases"][name]) for index, there in (reply or {}).items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise EngineError(
                f"{self._calls.host} returned no aliases", fix="check [switch] url"
            ) from None

    def point(self, index: str, *, others: bool) -> None:
        """Point it to an index, and to no other; raises EngineError.

        An index that is neither the baseline nor the candidate is an error without ``others``:
        someone else moved the alias.
        """
        now = self.indexes()
        if set(now) == {index}:
            return
        config = self._config
        strange = sorted(set(now) - {config.baseline_index, config.candidate_index})
        if strange and not others:
            raise EngineError(
                f"it points to {', '.join(strange)}, neither the baseline nor the candidate",
                fix=f"point it to {config.baseline_index} or {config.candidate_index}",
            )
        former = next(iter(now.values()), {})
        kept = {key: former[key] for key in _PROPERTIES if key in former}
        actions: list[dict[str, Any]] = [
            {"remove": {"index": other, "alias": config.alias}} for other in now if other != index
        ]
        actions.append({"add": {"index": index, "alias": config.alias} | kept})
        self._calls.json("POST", f"{self._calls.base}/_aliases", {"actions": actions})
        if set(now := self.indexes()) != {index}:
            found = ", ".join(sorted(now)) or "no index"
            raise EngineError(f"it points to {found} and not to {index}", again=True)
