"""Forms that are refused: shown again, with what was typed and the message beside it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi import FastAPI
from tests.web.conftest import ClientOf

from karat.tables.accounts.people import Role


@pytest.mark.parametrize(
    ("role", "where", "fields", "held"),
    [
        pytest.param(
            "engineer",
            "/golden/shop/pairs",
            {"runs": ["old"], "k": "7", "method": "rbp", "budget": "some"},
            ['value="old" checked', 'value="7"', 'value="rbp" selected', 'value="some"'],
            id="pool",
        ),
        pytest.param(
            "engineer",
            "/golden/shop/pairs",
            {"runs": ["new"], "k": "ten", "method": "rr"},
            ['value="new" checked', 'value="ten"', 'value="rr" selected'],
            id="pool-depth",
        ),
        pytest.param(
            "engineer",
            "/golden/shop/exchange",
            {"name_of_format": "trec", "rater": "ann"},
            ['value="trec" selected', 'name="rater" value="ann"'],
            id="import",
        ),
        pytest.param(
            "owner",
            "/account/tokens",
            {"name": "Nightly", "scopes": ["write"], "days": "365", "password": "wrong"},
            ['name="name" value="Nightly"', 'value="write" checked', 'value="365" selected'],
            id="token",
        ),
        pytest.param(
            "engineer",
            "/trends/marks",
            {"time": "2026-13-01T00:00", "kind": "corpus", "text": "A <b>", "back": "/trends"},
            [
                'name="time" value="2026-13-01T00:00"',
                'value="corpus" selected',
                'name="text" value="A &lt;b&gt;"',
                "<details open><summary>Add an annotation",
            ],
            id="mark",
        ),
    ],
)
def test_what_was_typed_is_kept(
    app: FastAPI,
    client_of: ClientOf,
    role: Role,
    where: str,
    fields: dict[str, Any],
    held: list[str],
) -> None:
    browser = client_of(role)
    if where == "/account/tokens":
        accounts = app.state.site.accounts
        someone = accounts.accept(accounts.invite("tess", role).text, "correct horse battery")
        browser.hold(accounts.start_session(someone, "A browser"))
    answer: Any = browser.fill(where, **fields)
    assert 400 <= answer.status_code < 500
    assert re.search(r'class="wrong" role="alert"', answer.text)
    for part in held:
        assert part in answer.text, part
    if where == "/golden/shop/pairs":
        assert answer.text.count("checked") == 1
