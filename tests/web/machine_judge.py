"""A machine judge in the workspace of the shop: declared, run, stored and certified."""

from __future__ import annotations

import sys
from pathlib import Path

from karat.formats.own.judges import read_judge
from karat.formats.own.passports import write_passport
from karat.reports.judging.autojudge import passport_json
from karat.reports.writers.plain import to_json
from karat.workflows.judging.autojudge import certify, run
from karat.workflows.judging.machine_grades import pairs_of_golden_set, store_grades
from karat.workflows.workspace.workspace import Workspace

DECLARED = '\n[judge.mine]\nkind = "python"\nfunction = "shop_judge:judge"\n'
_JUDGE = '''
def judge(pair):
    """Grades by the number of the document; of one it says nothing."""
    if pair["doc_id"] == "d4":
        raise ValueError("d4 is too long")
    words = " ".join(pair["document"]["body"].split()[:3])
    return {"grade": int(pair["doc_id"][1:]) % 4, "evidence": words, "reason": "its number"}
'''


def declare(root: Path, text: str = DECLARED) -> None:
    (root / "shop_judge.py").write_text(_JUDGE)
    with (root / "karat.toml").open("a") as file:
        file.write(text)


def judged(opened: Workspace) -> None:
    """Its grades in the golden set, and its passport."""
    sys.modules.pop("shop_judge", None)  # that of another test
    config = read_judge("mine", opened.workspace.root)
    given = pairs_of_golden_set(opened)
    store_grades(opened, run(config, given.pairs, patient=True))
    found = certify(config, given, tests=3)
    write_passport(config.root, config.rater, to_json(passport_json(found)))
