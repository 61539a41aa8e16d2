"""karat starts fast: nothing heavy is loaded before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

HELP = """
import sys
from karat.cli.main import main
sys.argv = ["karat", "--help"]
try:
    code = main()
except SystemExit as stop:
    code = stop.code
assert not code, code
"""
LOADED = "\nimport sys; print('loaded:', *{name.partition('.')[0] for name in sys.modules})"


@pytest.mark.parametrize(
    ("start", "heavy"),
    [
        pytest.param(
            HELP, {"altair", "fastapi", "numpy", "polars", "pydantic", "scipy"}, id="karat --help"
        ),
        pytest.param("import karat", {"narwhals", "numpy", "polars", "scipy"}, id="import karat"),
    ],
)
def test_nothing_heavy_is_loaded(start: str, heavy: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", start + LOADED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *_, last = done.stdout.splitlines()
    loaded = set(last.removeprefix("loaded:").split())
    assert "karat" in loaded
    assert not loaded & heavy, "see who imports it: python -X importtime -c 'import karat'"


def test_help_names_the_command() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=False)
    assert "karat" in done.stdout
    assert not done.stderr
