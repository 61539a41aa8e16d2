"""What packaging/ holds can be read by what it is for, and says what karat serve takes."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from karat.cli.main import karat

INSTRUCTIONS = {
    "FROM",
    "WORKDIR",
    "COPY",
    "RUN",
    "USER",
    "VOLUME",
    "ENV",
    "EXPOSE",
    "STOPSIGNAL",
    "HEALTHCHECK",
    "ENTRYPOINT",
    "CMD",
}


@pytest.fixture
def unit(root: Path) -> configparser.RawConfigParser:
    """The systemd unit."""
    found = configparser.RawConfigParser(strict=True)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string((root / "packaging/karat.service").read_text())
    return found


def instructions(root: Path) -> list[tuple[str, str]]:
    text = (root / "packaging/Containerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in joined.splitlines()]


def takes(words: list[str]) -> dict[str, object]:
    """What karat serve makes of its options; an unknown one raises."""
    name, *options = words
    command = karat.commands[name]
    # click keeps the first help option it makes: that of a command by itself would lack -h.
    top = karat.make_context("karat", [], resilient_parsing=True)
    return command.make_context(name, list(options), top, resilient_parsing=False).params


def test_the_container_starts_as_somebody_without_rights(root: Path) -> None:
    found = instructions(root)
    assert {name for name, _ in found} <= INSTRUCTIONS
    told = dict(found)
    assert json.loads(told["ENTRYPOINT"]) == ["karat"]
    said = takes(json.loads(told["CMD"]))
    assert (said["host"], said["port"], said["log"]) == ("0.0.0.0", 8000, "json")
    assert told["USER"] == "karat"
    for copied in [value for name, value in found if name == "COPY"]:
        *sources, _ = copied.split()
        assert all((root / source).exists() for source in sources), copied
    for named in re.findall(r"requirements/[\w.]+", " ".join(value for _, value in found)):
        assert (root / named).is_file()
    compile(json.loads(told["HEALTHCHECK"].partition("CMD ")[2])[2], "healthcheck", "exec")


def test_the_service_starts_what_karat_takes(unit: configparser.RawConfigParser) -> None:
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/karat")
    said = takes(words)
    assert (said["workers"], said["secure"], said["proxies"]) == (2, True, ("127.0.0.1",))
    assert said["start"] == Path(unit["Service"]["WorkingDirectory"])
    assert int(unit["Service"]["TimeoutStopSec"]) > 10  # longer than karat takes itself


def test_systemd_finds_nothing_wrong_with_it(root: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze")
    text = (root / "packaging/karat.service").read_text()
    # The program, and whom it runs as, are of another machine.
    text = text.replace("/opt/karat/bin/karat", shutil.which("true") or "/bin/true")
    path = tmp_path / "karat.service"
    path.write_text(re.sub(r"(?m)^(User|Group)=.*\n", "", text))
    done = subprocess.run(
        [program, "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )
    said = [line for line in done.stderr.splitlines() if "karat.service" in line]
    assert said == []


def test_nginx_can_read_it(root: Path, tmp_path: Path) -> None:
    text = (root / "packaging/nginx.conf").read_text()
    bare = re.sub(r"#.*", "", text)
    assert bare.count("{") == bare.count("}") == 3
    for line in filter(None, map(str.strip, bare.splitlines())):
        assert line.endswith((";", "{", "}")), line
    assert "$proxy_add_x_forwarded_for" not in bare
    program = shutil.which("nginx")
    if program is None:
        pytest.skip("needs nginx, to ask it as well")
    without = re.sub(r"(?m)^\s*(ssl_\w+ .*|listen) .*$", "", text).replace(" ssl;", ";")
    (tmp_path / "nginx.conf").write_text(f"events {{}}\nhttp {{\n{without}\n}}\n")
    done = subprocess.run(
        [program, "-t", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "syntax is ok" in done.stderr, done.stderr


def test_unknown_options_would_be_told() -> None:
    with pytest.raises(click.NoSuchOption):
        takes(["serve", "--nonsense"])
