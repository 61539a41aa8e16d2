"""--quick runs a part of every folder of tests in its time; what tests take is written down."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import durations
from tests.durations import Cost


def test_quick_takes_the_cheapest_cases_of_every_folder_within_its_budget() -> None:
    costs = {
        "tests/web/test_kill.py": Cost(10, 50.0),
        "tests/web/framework/test_errors.py": Cost(90, 9.0),
        "tests/web/api/test_runs.py": Cost(50, 10.0),
        "tests/stats/test_t.py": Cost(100, 1.0),
        "tests/stats/test_bootstrap.py": Cost(50, 30.0),
        "tests/demo/test_build.py": Cost(1, 30.0),
    }
    # 301 cases: web has 150 of them, so 19.9 of 40 s; stats as many; demo 0.13 s, and one file.
    assert durations.choose([*costs, "tests/web/test_new.py"], costs, 40.0) == {
        "tests/web/framework/test_errors.py",
        "tests/web/api/test_runs.py",
        "tests/stats/test_t.py",
        "tests/demo/test_build.py",
        "tests/web/test_new.py",
    }


@pytest.fixture
def project(tmp_path: Path, root: Path) -> Path:
    """A project of five tests in three files, which keeps its durations as this one does."""
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = ["--import-mode=importlib"]\n'
    )
    (tmp_path / "tests/web").mkdir(parents=True)
    shutil.copy(root / "tests/durations.py", tmp_path / "tests")
    (tmp_path / "tests/conftest.py").write_text(
        'pytest_plugins = ["tests.durations"]\n'
        "def pytest_addoption(parser):\n    parser.addoption('--deep', action='store_true')\n"
    )
    sleep = "import time\ndef test_{}():\n    time.sleep({})\n"
    (tmp_path / "tests/test_a.py").write_text(sleep.format("a", 0.01))
    (tmp_path / "tests/web/test_b.py").write_text("def test_b():\n    pass\n")
    (tmp_path / "tests/web/test_c.py").write_text(
        sleep.format("c", 0.3) + "def test_d():\n    pass\ndef test_e():\n    assert True\n"
    )
    return tmp_path


def run(project: Path, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=project,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # others take a second to load
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_run_of_everything_says_where_its_time_went(project: Path) -> None:
    said = run(project, "--record")
    _, *lines = filter(None, said.partition("seconds by folder")[2].splitlines())
    names = [line.split()[-1] for line in lines[:5]]
    assert names == ["web", ".", "all", "files:", "tests/web/test_c.py"]
    assert lines[2].split()[2:4] == ["5", "cases"]
    assert "wrote tests/durations.json" in said
    built, record = (
        json.loads((project / folder / "durations.json").read_text())
        for folder in ("build", "tests")
    )
    assert built == record
    assert list(built) == ["tests/test_a.py", "tests/web/test_b.py", "tests/web/test_c.py"]
    cases, seconds = built["tests/web/test_c.py"]
    assert cases == 3
    assert 0.3 <= seconds < 10


@pytest.mark.deep  # a process for each of its runs
def test_quick_leaves_files_out_unless_they_are_named(project: Path) -> None:
    record = project / "tests/durations.json"
    known = {"tests/test_a.py": [1, 0.0], "tests/web/test_b.py": [1, 0.0]}
    record.write_text(json.dumps({**known, "tests/web/test_c.py": [3, 500.0]}))
    before = record.read_text()
    said = run(project, "--quick")
    assert "quick: 2 of 3 test files\n" in said
    assert "2 passed" in said
    assert not (project / "build").exists(), "a part is no measure of the whole"
    assert "3 passed" in run(project, "--quick", "tests/web/test_c.py")
    assert "1 passed, 1 deselected" in run(project, "--quick", "-k", "test_b")
    assert "give one of them" in run(project, "--quick", "--deep")
    # A file that no record has is new, and runs.
    record.write_text(json.dumps(known))
    said = run(project, "--quick")
    assert "quick: 3 of 3 test files, 1 of them not in tests/durations.json\n" in said
    assert "5 passed" in said
    record.write_text(before)


@pytest.mark.deep  # a process for each of its runs
def test_a_record_is_of_whole_files_that_pass(project: Path) -> None:
    record = project / "tests/durations.json"
    record.write_text('{"tests/gone.py": [1, 1.0], "tests/test_a.py": [7, 7.0]}')
    assert "not recorded" in run(project, "--record", "-k", "test_c")
    assert "not recorded" in run(project, "--record", "tests/web/test_c.py::test_d")
    (project / "tests/web/test_b.py").write_text("def test_b():\n    assert False\n")
    assert "not recorded" in run(project, "--record", "tests/web")
    assert "gone.py" in record.read_text()
    assert "wrote" in run(project, "--record", "tests/web/test_c.py")
    found = json.loads(record.read_text())
    assert list(found) == ["tests/test_a.py", "tests/web/test_c.py"]
    assert found["tests/test_a.py"] == [7, 7.0]
