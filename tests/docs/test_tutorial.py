"""The tutorial shows what karat prints.

Its ```text blocks that begin with ``$`` are run in order, in one folder; each must print what the
page shows (``…`` as in tests/house/test_docs.py).
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/tutorials/first-evaluation.md"


def house() -> ModuleType:
    """tests/house/test_docs.py, which knows how to run a page."""
    spec = spec_from_file_location("house_test_docs", ROOT / "tests/house/test_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.deep  # its commands are those of README and of how-to pages
def test_the_tutorial_shows_what_karat_prints(tmp_path: Path, built_demo: Path) -> None:
    docs = house()
    text = PAGE.read_text(encoding="utf-8")
    page = docs.Page(tmp_path)
    for found in docs.FENCE.finditer(text):
        if found["language"] != "text" or not found["body"].startswith("$ "):
            continue
        ((command, shown),) = docs.commands(found["body"])
        if command == "karat demo demo":  # which takes long, and was typed for other pages too
            shutil.copytree(built_demo / "demo", tmp_path / "demo")
            code, output = 0, (built_demo / "printed.txt").read_text(encoding="utf-8")
        else:
            code, output = page.bash(command)
        assert code == 0, f"$ {command}\n{output}"
        pattern = docs.as_pattern(shown)
        same = re.fullmatch(pattern, f"{docs.tidy(output)}\n")
        assert same, f"$ {command}\nprinted\n{output}\nand the page shows\n{shown}"
