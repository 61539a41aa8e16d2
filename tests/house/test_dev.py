"""A clone can be set up from what it holds: dev.py, and pinned requirements without addresses."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

PINNED = ("core.txt", "build.txt", "dev.txt")
# `name==version ; where \`, then its hashes; the comments say who asked for it.
PIN = re.compile(
    r"^(?P<pin>[a-z0-9-]+==[^\s;]+(?: ; [^\\]+?)?) \\\n(?P<hashes>(?:    --hash.*\n)+)",
    re.MULTILINE,
)


def pins(path: Path) -> dict[str, str]:
    """Each pin of a requirements file, with its hashes."""
    return {each["pin"]: each["hashes"] for each in PIN.finditer(path.read_text(encoding="utf-8"))}


def plain(name: str) -> str:
    """The name of a requirement as an index spells it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", name.strip())[0]).lower()


@pytest.mark.parametrize("name", PINNED)
def test_requirements_hold_pins_and_hashes_and_nothing_else(root: Path, name: str) -> None:
    text = (root / "requirements" / name).read_text(encoding="utf-8")
    rest = [line for line in PIN.sub("", text).splitlines() if not line.startswith("    #")]
    assert not rest, f"requirements/{name}: write it with python3 dev.py pin"
    assert "://" not in text


def test_the_development_pins_include_all_others(root: Path) -> None:
    # Whether a mark narrows a pin is told from all requirements, so it differs between files.
    everything, *others = (
        {
            pin.partition(" ;")[0]: hashes
            for pin, hashes in pins(root / "requirements" / name).items()
        }
        for name in ("dev.txt", "core.txt", "build.txt")
    )
    for each in others:
        assert each.items() <= everything.items()


def test_every_declared_dependency_is_pinned(root: Path) -> None:
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    groups = settings["dependency-groups"]
    wanted = {
        "core.txt": [
            *settings["project"]["dependencies"],
            *(
                each
                for extra in ("report", "store", "web")
                for each in settings["project"]["optional-dependencies"][extra]
                if not each.startswith("karat[")
            ),
        ],
        "build.txt": groups["build"],
        "dev.txt": [each for each in groups["dev"] if isinstance(each, str)],
    }
    for name, declared in wanted.items():
        pinned = {plain(pin) for pin in pins(root / "requirements" / name)}
        lacking = {plain(each) for each in declared} - pinned
        assert not lacking, f"requirements/{name} lacks {lacking}: run python3 dev.py pin"


def test_an_older_python_can_read_dev_py_as_far_as_its_message(root: Path) -> None:
    ast.parse((root / "dev.py").read_text(encoding="utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["--help"], 0, "demo [DIR]"),
        (["tests"], 2, "one of demo, run, test, check, print, pin"),
        (["check", "src"], 2, "check takes no arguments"),
    ],
)
def test_dev_py_says_what_it_can_do(
    root: Path, tmp_path: Path, args: list[str], code: int, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, root / "dev.py", *args],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code
    assert said in done.stdout + done.stderr


@pytest.fixture
def dev(root: Path) -> ModuleType:
    """dev.py as a module."""
    found = spec_from_file_location("dev", root / "dev.py")
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


PIP = """
import sys, time
for line in ("Ignoring tzdata: markers do not match", "Collecting numpy==2.1 (from -r dev.txt)",
             "Collecting polars==2.1"):
    print(line, flush=True)
    time.sleep(float(sys.argv[2]))
print("Installing collected packages: numpy, polars", flush=True)
time.sleep(float(sys.argv[2]))
sys.exit(int(sys.argv[1]))
"""


def test_a_step_shows_how_far_it_is(
    dev: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "EVERY_S", 0.03)
    dev.step("installing", [sys.executable, "-c", PIP, "0", "0.25"], packages=3)
    first, *between, last = capsys.readouterr().err.splitlines()
    assert first == "installing …"
    shown = {re.sub(r" \(\d+ s\)$", "", line.strip()) for line in between}
    assert {"package 3 of 3: polars==2.1", "installing what was downloaded"} <= shown
    assert re.fullmatch(r"  \d\.\d s", last)
    # On a terminal it is one line that is rewritten.
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    dev.step("installing", [sys.executable, "-c", PIP, "0", "0.25"], packages=3)
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert re.search(r"\x1b\[Kinstalling … package 3 of 3: polars==2.1 \(\d s\)", err)
    assert re.search(r"installing … \d\.\d s\n$", err)


def test_a_step_that_fails_shows_what_pip_said(
    dev: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        dev.step("installing", [sys.executable, "-c", PIP, "1", "0"])
    err = capsys.readouterr().err
    assert "Collecting numpy==2.1" in err
    assert "dev.py: installing did not work\n  fix: " in err


def test_pins_are_counted(root: Path, dev: ModuleType) -> None:
    for name in PINNED:
        path = root / "requirements" / name
        assert dev.pins(path) == len(pins(path))
