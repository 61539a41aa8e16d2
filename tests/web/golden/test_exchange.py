"""Exchange: files of strangers come in whole or not at all, and go out as they were asked for."""

from __future__ import annotations

import io
import json
import re
import zipfile
from html import unescape
from pathlib import Path

import polars as pl
import pytest
from tests.web.conftest import NOW, Browser, ClientOf, with_deep

from karat.formats.exchange import source_file
from karat.formats.exchange.catalogue import EXCHANGES
from karat.store.sql import audit, golden_sets
from karat.web.golden.exchange import READ, WRITTEN

CSV = b"query_id,query,doc_id,grade,rater\nq7,blue door,d1,2,ann\nq7,blue door,d2,0,ann\n"


def zipped(**files: bytes) -> bytes:
    """A ZIP file of files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


NO_QUERIES = zipped(
    **{"corpus.jsonl": b'{"_id": "d1", "text": "x"}\n', "qrels/test.tsv": b"q1\td1\t1\n"}
)


def send(
    browser: Browser, name: str, data: bytes, to: str = "shop", **fields: str
) -> tuple[int, str]:
    """Send a file, as the form does: the status, and the page's text."""
    answer = browser.post(
        f"/golden/{to}/exchange",
        data={"csrf": browser.csrf, **fields},
        files={"file": (name, data)},
    )
    return answer.status_code, unescape(answer.text)


def held(browser: Browser) -> tuple[int, int]:
    """How many queries and judgments the golden set has."""
    found = [
        len(browser.get(f"/golden/shop/{key}", params={"format": "json"}).json()[key])
        for key in ("queries", "judgments")
    ]
    return found[0], found[1]


def test_a_file_comes_in_and_is_noted(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    status, text = send(browser, "C:\\ann\\<b>ratings</b>.csv", CSV)
    assert status == 200, text
    assert "(csv) was imported: 1 new query, 0 new documents, 2 new judgments" in text
    assert "Kept" in text
    assert "Lost" in text
    assert held(browser) == (5, 50)
    with browser.site.workspace.store.read() as c:
        noted = audit.frame(c).filter(pl.col("action") == "import file")
    assert noted["person"].to_list() == ["egon"]
    assert "file b>.csv" in noted["about"][0]  # the last part of the name, as text
    page = browser.get("/golden/shop/exchange").text
    assert "<b>ratings" not in page


def test_a_golden_set_with_queries_to_judge_comes_in(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    queries, judged = held(browser)
    items = b'[{"query": "brand new", "relevant_docs": {"d1": 2}}, {"query": "to be judged"}]'
    status, text = send(browser, "golden.json", items)
    assert status == 200, text
    assert "(golden-list) was imported: 2 new queries" in text
    assert "1 query not judged yet" in text
    assert held(browser) == (queries + 2, judged + 1)


def test_grades_of_a_model_say_so(client_of: ClientOf) -> None:
    browser, machine = client_of("engineer"), CSV.replace(b"ann", b"gpt-5")
    status, text = send(browser, "m.csv", machine)
    assert status == 400
    assert "he rater 'gpt-5' reads like a model" in text
    assert "state the source" in text
    assert '<select name="source">' in text
    assert send(browser, "m.csv", machine, source="llm")[0] == 200
    rows = browser.get("/golden/shop/judgments", params={"format": "json"}).json()["judgments"]
    assert {row["source"] for row in rows if row["rater"] == "gpt-5"} == {"llm"}


@pytest.mark.parametrize(
    ("name", "data", "named", "said"),
    [
        ("grades.csv", CSV.replace(b",2,", b",9,"), "", "not on the golden set's scale"),
        ("x.csv", CSV, "magic", "unknown exchange format 'magic'"),
        ("no_queries.zip", NO_QUERIES, "", "add queries.jsonl, or give its files one by one"),
        *with_deep(  # what is wrong with each is in the tests of its format
            ("empty.csv", b"", "", "empty"),
            ("photo.png", b"\x89PNG\r\n\x1a\n\x00\x00", "", ""),
            ("twice.csv", CSV + b"q7,blue door,d1,1,ann\n", "", ""),
            ("bad.json", b'{"a": [1, 2', "quepid-json", ""),
            ("deep.json", b"[" * 100_000, "rre", ""),
            ("run.trec", b"q1 Q0 d1 1 2.5 bm25\n", "", "this is a run"),
            ("x.csv", CSV, "beir", "BEIR folder"),
            ("half.zip", b"PK\x03\x04 not a zip", "", ""),
            ("x.gz", b"\x1f\x8b\x08 broken", "", ""),
            ("nul.csv", CSV.replace(b"blue", b"bl\x00ue"), "", ""),
            ("latin.csv", CSV.replace(b"blue", b"bl\xe9"), "", ""),
        ),
    ],
)
def test_what_cannot_come_in_leaves_nothing_behind(
    client_of: ClientOf, name: str, data: bytes, named: str, said: str
) -> None:
    browser = client_of("engineer")
    before = held(browser)
    status, text = send(browser, name, data, name_of_format=named)
    assert status == 400, text
    assert said.casefold() in text.casefold()
    assert f"Nothing of {name} was imported." in text.replace("<bdi>", "").replace("</bdi>", "")
    assert "karat-" not in text  # where it lay is nobody's to know
    (wrong,) = re.findall(r'<div class="wrong".*?</div>', text, re.DOTALL)
    assert not re.search(r"--[a-z]|karat [a-z]|iconv|jq ", wrong)  # nobody can type it here
    assert '<p class="wrong">' not in text  # and the list of imports has nothing to say
    assert held(browser) == before


@pytest.mark.parametrize(
    "name",
    # That each format is read as it was written is in tests/workflows/golden/test_export.py.
    ["csv", "beir", *with_deep(*(each for each in WRITTEN if each not in {"csv", "beir"}))],
)
def test_what_the_page_gives_out_it_takes_in(client_of: ClientOf, name: str) -> None:
    browser = client_of("engineer")
    with browser.site.workspace.store.begin() as c:
        row = golden_sets.find(c, "shop")
        golden_sets.make(
            c, "fresh", scale=row.scale, grades=row.grades, salt="s", guideline="", now=NOW
        )
    runs = "&run=old" if EXCHANGES[name].holds.runs else ""
    answer = browser.get(f"/golden/shop/exchange/file?to={name}{runs}")
    called = answer.headers["content-disposition"].partition('filename="')[2].rstrip('"')
    status, text = send(browser, called, answer.content, to="fresh")
    assert status == 200, text
    holds = EXCHANGES[name].holds
    graded = [
        {
            (row["text"] if holds.text else row["query_id"], row["doc_id"], row["grade"])
            for row in browser.get(f"/golden/{each}/pairs?format=json").json()["pairs"]
            if row["grade"] is not None
        }
        for each in ("shop", "fresh")
    ]
    assert graded[1] == (graded[0] if holds.judgments else set())
    assert len(browser.get("/golden/fresh/queries?format=json").json()["queries"]) == 4


def test_a_zip_bomb_is_refused(client_of: ClientOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_file, "MOST", 1 << 20)
    monkeypatch.setattr(source_file, "BOMB_FROM", 1 << 18)
    packed = zipped(**{"book.json": b" " * (1 << 22)})
    browser = client_of("engineer")
    before = held(browser)
    status, text = send(browser, "book.zip", packed)
    assert status == 400, text
    assert held(browser) == before


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "é" * 400 + ".csv", *with_deep("..", ".", "a\nb.csv")]
)
def test_names_of_files_are_only_names(client_of: ClientOf, name: str) -> None:
    status, text = send(client_of("engineer"), name, CSV, name_of_format="csv")
    assert status == 200, text


def test_no_file_is_no_import(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    answer = browser.fill("/golden/shop/exchange")
    assert answer.status_code == 400  # type: ignore[attr-defined]
    assert "No file was chosen" in answer.text  # type: ignore[attr-defined]
    broken = browser.post(
        "/golden/shop/exchange",
        content=b"--x\r\nContent-Disposition: form-data; name=",
        headers={"content-type": "multipart/form-data; boundary=x", "x-csrf": browser.csrf},
    )
    assert broken.status_code == 400


def test_a_form_of_another_site_is_refused(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    answer = browser.post(
        "/golden/shop/exchange", data={"csrf": "guessed"}, files={"file": ("x.csv", CSV)}
    )
    assert answer.status_code == 403
    assert held(browser) == (4, 48)


def test_every_format_that_is_written_is_downloaded(client_of: ClientOf, *, deep: bool) -> None:
    browser = client_of("engineer")
    for to in WRITTEN if deep else ("csv", "quepid-snapshot"):
        runs = "&run=old" if "snapshot" in to else ""
        answer = browser.get(f"/golden/shop/exchange/file?to={to}{runs}")
        assert answer.status_code == 200, (to, answer.text)
        assert answer.headers["content-type"] == "application/octet-stream"
        assert 'filename="shop-now' in answer.headers["content-disposition"]
        told = browser.get(f"/golden/shop/exchange?to={to}{runs}")
        assert f"Content as {to}" in told.text
    assert "queries" in READ
    packed = browser.get("/golden/shop/exchange/file?to=beir").content
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        names = archive.namelist()
        queries = archive.read("shop-now/queries.jsonl").decode().splitlines()
    assert "shop-now/qrels/test.tsv" in names
    assert next(json.loads(line)["text"] for line in queries) == "red shoes"


def test_what_cannot_go_out_is_said_on_the_page(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    for query, said in (
        ("to=magic", "unknown exchange format 'magic'"),
        ("to=rankquest", "only be read"),
        ("to=trec&edition=none", "no edition 'none'"),
        ("to=trec&run=old", "trec holds no runs"),
        ("to=quepid-snapshot", "none is named"),
    ):
        for page in ("exchange", "exchange/file"):
            answer = browser.get(f"/golden/shop/{page}?{query}")
            assert answer.status_code == 400
            assert said.casefold() in unescape(answer.text).casefold()
            assert "<h1>" in answer.text


def test_the_form_of_the_export_is_nothing_that_the_list_of_imports_complains_of(
    client_of: ClientOf,
) -> None:
    browser = client_of("engineer")
    send(browser, "x.csv", CSV)  # so that there is a list
    shown = browser.get("/golden/shop/exchange?to=csv&edition=&each_rater=true")
    assert "Content as csv" in shown.text
    assert 'class="wrong"' not in shown.text
    assert 'name="each_rater" value="true" checked' in shown.text
    wrong = unescape(browser.get("/golden/shop/exchange?to=trec&run=old&run=new").text)
    assert wrong.count('class="wrong"') == 1  # the format holds no runs
    assert "trec holds no runs" in wrong.casefold()
    assert wrong.count('type="checkbox" name="run"') == wrong.count(" checked> <bdi>") == 2
    answer = browser.get("/golden/shop/exchange?to=csv&format=json")
    assert answer.status_code == 200
    assert answer.json()["wanted"]["to"] == "csv"


def test_each_raters_judgments_go_out(client_of: ClientOf) -> None:
    browser = client_of("engineer")
    lines = browser.get("/golden/shop/exchange/file?to=csv&each_rater=true").text.splitlines()
    assert len(lines) == 1 + 48


def test_nothing_is_left_on_the_disk(
    client_of: ClientOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    browser = client_of("engineer")
    send(browser, "x.csv", CSV)
    send(browser, "x.csv", b"\x00")
    browser.get("/golden/shop/exchange/file?to=beir")
    browser.get("/golden/shop/exchange/file?to=magic")
    assert list(place.iterdir()) == []
