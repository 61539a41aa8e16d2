"""Roles and scopes: what follows from their order."""

from __future__ import annotations

import itertools

from karat.tables.accounts.people import ROLES, SCOPES, SCOPES_OF


def test_every_role_may_do_with_tokens_what_those_before_it_may() -> None:
    assert tuple(SCOPES_OF) == ROLES
    for less, more in itertools.pairwise(ROLES):
        assert set(SCOPES_OF[less]) < set(SCOPES_OF[more])


def test_only_owners_have_tokens_for_what_owners_do() -> None:
    assert SCOPES_OF["owner"] == SCOPES
    assert [role for role in ROLES if "admin" in SCOPES_OF[role]] == ["owner"]
