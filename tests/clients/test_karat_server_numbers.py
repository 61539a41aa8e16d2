"""Numbers computed here, with what a karat that is served holds: they are the server's own.

And what is asked for by its name in place of its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.choosing import deep_but
from tests.clients.test_karat_server import CSV, SCOPES, run_of, serve

import karat
from karat import Client, UsageError
from karat.store.sql import people
from karat.web.app import create_app
from karat.web.framework.settings import Settings
from karat.workflows.workspace.workspace import make_workspace, open_workspace


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of a judged golden set, of which a log gives two queries of four a weight."""
    root = tmp_path / "shop"
    make_workspace(root, now=1, name="shop", environment={})
    with open_workspace(root, now=1, environment={}) as opened, opened.store.begin() as c:
        people.add(c, "egon", "engineer", None, 1)
    app = create_app(Settings(root))
    server, thread, url = serve(app)
    accounts = app.state.site.accounts
    (tmp_path / "ratings.csv").write_text(CSV)
    (tmp_path / "log.csv").write_text("query,count\nquery 1,30\nquery 2,10\n")
    with Client(url, accounts.make_token(accounts.by_name("egon"), "t", SCOPES).text) as made:
        made.import_file("shop", tmp_path / "ratings.csv")
        yield made
    server.should_exit = True
    thread.join(10)


@pytest.mark.parametrize("edition", deep_but(["first"], [None, "first"]))
def test_with_the_queries_they_are_those_of_the_server_where_a_log_counted_some(
    client: Client, tmp_path: Path, edition: str | None
) -> None:
    assert "weight" not in client.queries("shop").columns  # none has one: all count the same
    client.choose("shop", tmp_path / "log.csv", size=2, replace=True)
    if edition:
        client.freeze("shop", edition)
    client.upload_run(run_of("old", 1))
    queries = client.queries("shop", edition)
    weight = dict(queries.select("query_id", "weight").iter_rows())
    assert {each: weight[each] for each in ("q3", "q4")} == {"q3": 0.0, "q4": 0.0}
    assert weight["q1"] + weight["q2"] == 2.0
    measures = ["nDCG@5", "RR@10", "P(rel=3)@1"]
    qrels = client.qrels("shop", edition)
    there = client.evaluate("old", measures, edition=edition or "now")["results"]
    here = karat.evaluate(qrels, run_of("old", 1), measures, queries=queries).to_dict()["results"]
    assert [(row["value"], row["n"]) for row in here] == [(row["value"], row["n"]) for row in there]
    assert {row["n"] for row in there} == {2}
    # A part of them weighs as it does among all.
    part = client.queries("shop", edition, query_id="q3")
    assert part["weight"].to_list() == [0.0]


def test_runs_are_named_wherever_they_can_be_numbered(client: Client) -> None:
    kept = client.upload_run(run_of("old", 1), "main/1")
    assert client.run("main/1") == client.run(kept["id"]) == client.runs()[0]
    assert client.run("main/1", golden="shop")["kept_by"] == "egon"
    assert client.download_run("main/1").to_dict() == run_of("old", 1).to_dict()
    assert client.explain("main/1", "q1", "P@3") == client.explain(kept["id"], "q1", "P@3")
    assert client.diagnose("main/1", "main/1") == client.diagnose(kept["id"], ["main/1"])
    with pytest.raises(UsageError, match=r"no run 'main/2'.*did you mean main/1"):
        client.remove_run("main/2")
    client.remove_run("main/1", golden="shop")
    assert client.runs() == []
