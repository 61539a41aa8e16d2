"""What a report costs: the time to write it, its size, and the time a browser takes to open it.

    python benchmarks/report.py [--runs A B] FOLDER

FOLDER holds ``qrels.*`` and ``input.*`` of one TREC track. `karat compare` of two of its runs, as a
process from start to exit, stands beside the same with ``--report``. Chromium opens the page from
a file, in a window 1280 wide; timed is its load event, from an empty tab, and once with 390.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from timing import in_turn

ROUNDS = 5


def main() -> None:
    """Print both commands' seconds, the page's size, and how fast it opens."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", nargs=2, default=["uic0301", "aplrob03a"], metavar="RUN")
    asked = parser.parse_args()
    qrels, *_ = sorted(asked.folder.glob("qrels.*"))
    runs = [next(asked.folder.glob(f"input.{name}*")) for name in asked.runs]
    karat = shutil.which("karat", path=str(Path(sys.executable).parent)) or "karat"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        compare = [karat, "compare", str(qrels), *map(str, runs)]
        commands = {"compare": compare, "with its report": [*compare, "--report", str(page)]}
        for name, timing in in_turn(commands, dict.fromkeys(commands, ROUNDS)).items():
            print(
                f"{name:16} {timing.seconds:5.2f} s ({timing.fastest:.2f} to {timing.slowest:.2f})"
            )
        print(f"{'page':16} {page.stat().st_size / 1e6:5.2f} MB")
        for width in (1280, 390):
            took = [opened(page, width) for _ in range(ROUNDS)]
            span = f"({min(took):.2f} to {max(took):.2f})"
            print(f"{f'opened at {width}':16} {statistics.median(took):5.2f} s {span}")


def opened(page: Path, width: int) -> float:
    """Seconds from an empty tab to the load event, in a browser of its own."""
    from playwright.sync_api import sync_playwright

    timing = "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
    with sync_playwright() as started:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser: Any = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": 800})
        tab.goto(page.as_uri(), wait_until="load")
        tab.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
        seconds = float(tab.evaluate(timing))
        browser.close()
    return seconds


if __name__ == "__main__":
    main()
