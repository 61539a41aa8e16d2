"""People, sessions, tokens and the audit: SQLite and PostgreSQL keep them alike."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from tests.contracts.conftest import ON_BOTH

from karat.errors import KaratError, UsageError
from karat.store.sql import audit, people, sessions
from karat.store.sql.opening import Store, open_store
from karat.tables.accounts.people import Person, Role
from karat.workflows.accounts import _passwords, _rate_limit
from karat.workflows.accounts.accounts import Accounts, SignInRefused

NOW = 1_800_000_000_000_000
DAY = 86_400_000_000
PASSWORD = "correct horse battery"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords are hashed at hardly any cost."""
    cost = _passwords.Cost(time_cost=1, memory_cost=8, parallelism=1)
    monkeypatch.setattr(_passwords, "COST", cost)


def add(store: Store, name: str, role: Role = "rater") -> Person:
    """An account without a password."""
    with store.begin() as c:
        return people.add(c, name, role, None, NOW)


def at_once(url: str, *works: Callable[[Store], object]) -> list[object]:
    """Do these at the same moment, each as a process with its own connections; what came of it."""
    ready, found = threading.Barrier(len(works)), [None] * len(works)

    def run(number: int) -> None:
        store = open_store(url)
        try:
            with store.read() as c:
                c.exec_driver_sql("SELECT 1")
            ready.wait(20)
            try:
                found[number] = works[number](store)  # type: ignore[call-overload]
            except KaratError as error:
                found[number] = error  # type: ignore[call-overload]
        finally:
            store.dispose()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return list(found)


@ON_BOTH
def test_a_name_is_taken_however_it_is_written(store: Store) -> None:
    add(store, "Zo\u00eb")  # in one character
    for same in ("Zo\u00eb", "Zoe\u0308", "ZO\u00cb", "\uff3ao\u00eb"):  # two; capitals; full width
        with store.begin() as c, pytest.raises(UsageError, match="there is an account called 'Zo"):
            people.add(c, same, "rater", None, NOW)
    assert add(store, "Zoe").name == "Zoe"


def test_everybody_with_what_is_open_of_theirs(store: Store) -> None:
    ann, ben = add(store, "ann", "owner"), add(store, "Ben")
    with store.begin() as c:
        sessions.begin(c, "a1", ann.id, "Firefox", NOW + 1, NOW + 100)
        sessions.begin(c, "a2", ann.id, "Chrome", NOW + 5, NOW + 10)
        sessions.add_token(c, "t1", ann.id, "ci", ["read"], NOW, None)
        sessions.add_token(c, "t2", ann.id, "old", ["read"], NOW, NOW + 10)
    with store.read() as c:
        early, late = people.all_users(c, NOW + 6), people.all_users(c, NOW + 50)
    told = {row.person: (row.seen_us, row.sessions, row.tokens) for row in early}
    assert told == {ann: (NOW + 5, 2, 2), ben: (None, 0, 0)}
    # The second session and token have ended by then.
    told = {row.person: (row.seen_us, row.sessions, row.tokens) for row in late}
    assert told == {ann: (NOW + 1, 1, 1), ben: (None, 0, 0)}


def test_who_is_shut_out_has_no_session_and_no_token_and_gets_none(store: Store) -> None:
    add(store, "ann", "owner")
    ben = add(store, "ben")
    with store.begin() as c:
        sessions.begin(c, "s", ben.id, "", NOW, NOW + DAY)
        sessions.add_token(c, "t", ben.id, "ci", ["judge"], NOW, None)
        assert sessions.by_token(c, "s", NOW) is not None
        assert sessions.token(c, "t", NOW) is not None
        people.disable(c, ben.id, NOW + 1)
    with store.begin() as c:
        assert sessions.by_token(c, "s", NOW + 1) is None
        assert sessions.token(c, "t", NOW + 1) is None
        with pytest.raises(UsageError, match="is disabled"):
            sessions.begin(c, "s2", ben.id, "", NOW + 2, NOW + DAY)
        with pytest.raises(UsageError, match="is disabled"):
            sessions.add_token(c, "t2", ben.id, "ci", ["judge"], NOW + 2, None)
        people.disable(c, ben.id, None)
        # Let in again, he has to sign in, and to make new tokens.
        assert sessions.by_token(c, "s", NOW + 3) is None
        assert sessions.token(c, "t", NOW + 3) is None
        sessions.begin(c, "s3", ben.id, "", NOW + 3, NOW + DAY)
        assert sessions.by_token(c, "s3", NOW + 4) is not None


def test_sessions_of_one_person_end_together_but_for_the_one_kept(store: Store) -> None:
    ann, ben = add(store, "ann"), add(store, "ben")
    with store.begin() as c:
        for token, who in (("a1", ann), ("a2", ann), ("b1", ben)):
            sessions.begin(c, token, who.id, token, NOW, NOW + DAY)
        assert {s.agent: s.here for s in sessions.of_person(c, ann.id, NOW, "a2")} == {
            "a1": False,
            "a2": True,
        }
        sessions.end_all(c, ann.id, but="a2")
        assert [s.agent for s in sessions.of_person(c, ann.id, NOW)] == ["a2"]
        sessions.end_all(c, ann.id)
        assert not sessions.of_person(c, ann.id, NOW)
        assert [s.agent for s in sessions.of_person(c, ben.id, NOW)] == ["b1"]


def test_a_session_and_a_token_end_at_their_time_and_not_before(store: Store) -> None:
    ann = add(store, "ann")
    with store.begin() as c:
        sessions.begin(c, "s", ann.id, "", NOW, NOW + 10)
        sessions.add_token(c, "t", ann.id, "ci", ["judge"], NOW, NOW + 10)
        for now, good in ((NOW + 9, True), (NOW + 10, False)):
            assert (sessions.by_token(c, "s", now) is not None) == good
            assert (sessions.token(c, "t", now) is not None) == good


def test_nobody_revokes_a_token_of_another(store: Store) -> None:
    ann, ben = add(store, "ann"), add(store, "ben")
    with store.begin() as c:
        number = sessions.add_token(c, "t", ann.id, "ci", ["judge"], NOW, None)
        assert sessions.revoke(c, ben.id, number, NOW) is None
        assert sessions.token(c, "t", NOW) is not None
        assert sessions.revoke(c, ann.id, number, NOW) == "ci"
        assert sessions.token(c, "t", NOW) is None
        assert sessions.revoke(c, ann.id, number, NOW) is None


def invite(c: sa.Connection, token: str, name: str, now: int, kind: str = "account") -> int:
    """An invitation that is good for a day."""
    return people.invite(c, kind, token, name, "rater", made_by=None, now=now, ends_us=now + DAY)


def test_an_invitation_is_good_once_until_it_ends_and_for_its_own_kind(store: Store) -> None:
    with store.begin() as c:
        number = invite(c, "i", "ann", NOW)
        assert people.invited(c, "link", "i", NOW) is None
        assert people.invited(c, "account", "i", NOW + DAY) is None
        found = people.invited(c, "account", "i", NOW + DAY - 1)
        assert found is not None
        assert (found.id, found.name) == (number, "ann")
        assert people.use(c, number, NOW)
        assert not people.use(c, number, NOW)
        assert people.invited(c, "account", "i", NOW) is None


def test_a_second_invitation_of_a_name_takes_the_place_of_the_first(store: Store) -> None:
    with store.begin() as c:
        invite(c, "i1", "ann", NOW)
        link = invite(c, "l", "ann", NOW, "link")
        second = invite(c, "i2", "ann", NOW + 1)
        assert people.invited(c, "account", "i1", NOW + 1) is None
        assert [each.id for each in people.invitations(c, NOW + 1)] == [second]
        assert people.invited(c, "link", "l", NOW + 1) is not None
        assert people.withdraw(c, link, NOW + 1) is None, "a one-time link is no invitation"
        assert people.withdraw(c, second, NOW + 1) == "ann"
        assert not people.invitations(c, NOW + 1)


def test_only_an_invitation_younger_than_the_account_renews_it(store: Store) -> None:
    with store.begin() as c:
        invite(c, "before", "ann", NOW - 1)
    add(store, "ann")
    with store.begin() as c:
        found = people.invited(c, "account", "before", NOW)
        assert found is not None
        assert not found.renews
        invite(c, "after", "ann", NOW + 1)
        found = people.invited(c, "account", "after", NOW + 1)
        assert found is not None
        assert found.renews


@pytest.mark.parametrize("how", ["shut out", "rater"])
def test_the_last_owner_stays(store: Store, how: str) -> None:
    ann, ben = add(store, "ann", "owner"), add(store, "ben", "owner")
    add(store, "cleo", "engineer")

    def lose(c: sa.Connection, person: Person) -> None:
        if how == "rater":
            people.set_role(c, person.id, "rater")
        else:
            people.disable(c, person.id, NOW)

    with store.begin() as c:
        lose(c, ann)
    with store.begin() as c, pytest.raises(UsageError, match="last owner"):
        lose(c, ben)
    with store.read() as c:
        rows = {row.person.name: row for row in people.all_users(c, NOW)}
    assert rows["ben"].person.role == "owner"
    assert rows["ben"].disabled_us is None


@ON_BOTH
def test_owners_who_shut_each_other_out_leave_one(url: str, store: Store) -> None:
    for _ in range(5):
        with store.begin() as c:
            pair = [
                people.find(c, n) or people.add(c, n, "owner", None, NOW) for n in ("ann", "ben")
            ]
            for each in pair:
                people.disable(c, each.id, None)
        ann, ben = pair

        def shut(person: Person) -> Callable[[Store], object]:
            def work(store: Store) -> None:
                with store.begin() as c:
                    people.disable(c, person.id, NOW)

            return work

        came = at_once(url, shut(ann), shut(ben))
        assert sorted(str(type(each).__name__) for each in came) == ["NoneType", "UsageError"]
        with store.read() as c:
            assert [row.disabled_us for row in people.all_users(c, NOW)].count(None) == 1


@pytest.mark.usefixtures("cheap")
def test_an_invitation_makes_one_account_when_many_follow_it_at_once(
    url: str, store: Store
) -> None:
    secret = Accounts(store, lambda: NOW).invite("ann", "engineer").text

    def accept(store: Store) -> object:
        return Accounts(store, lambda: NOW + 1).accept(secret, PASSWORD)

    came = at_once(url, *[accept] * 4)
    assert sum(isinstance(each, Person) for each in came) == 1, came
    assert all("no longer valid" in str(each) for each in came if not isinstance(each, Person))
    with store.read() as c:
        assert [row.person.name for row in people.all_users(c, NOW)] == ["ann"]


@ON_BOTH
def test_tries_at_once_are_counted_one_by_one(url: str, store: Store) -> None:
    def guess(store: Store) -> object:
        with store.begin() as c:
            return _rate_limit.wait(c, _rate_limit.try_of("ann", "192.0.2.1", NOW))

    came = at_once(url, *[guess] * 12)
    # Five are free, and each of the others has to wait the second after the fifth.
    assert sorted(came, key=str) == [0] * 5 + [1] * 7


@pytest.mark.usefixtures("cheap")
def test_real_accounts_on_both_engines(store: Store) -> None:
    now = [NOW]
    accounts = Accounts(store, lambda: now[0])
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    assert accounts.sign_in("ann", PASSWORD, "192.0.2.1") == ann
    for wrong in ("ann", "nobody", "a\0nn", "\ud800"):  # neither engine keeps the last two
        with pytest.raises(SignInRefused, match="wrong name or password"):
            accounts.sign_in(wrong, "not the password", "192.0.2.2")
    session = accounts.start_session(ann, "Firefox\x00\n" + "x" * 500)
    assert accounts.by_session(session) == ann
    secret = accounts.make_token(ann, "ci", ["read"]).text
    assert accounts.by_token(secret) == (ann, ("read",))
    with store.read() as c:
        kept = [
            str(row)
            for table in ("person", "web_session", "api_token", "invitation", "audit")
            for row in c.execute(sa.text(f"SELECT * FROM {table}"))
        ]
    assert not [row for row in kept if session in row or secret in row or PASSWORD in row]


@ON_BOTH
def test_what_was_done_is_never_changed_nor_taken_away(store: Store) -> None:
    with store.begin() as c:
        audit.note(c, "ann", "invite", "ben", NOW, {"role": "rater"})
        audit.note(c, "ann", "shut out", "ben", NOW + 1)
    for statement in ("UPDATE audit SET person = 'eve'", "DELETE FROM audit"):
        with pytest.raises(KaratError), store.begin() as c:
            c.execute(sa.text(statement))
    with store.read() as c:
        rows = audit.frame(c).select("person", "action", "subject", "about").rows()
    assert rows == [("ann", "shut out", "ben", ""), ("ann", "invite", "ben", "role rater")]


def test_an_empty_audit_has_its_columns(store: Store) -> None:
    with store.read() as c:
        assert audit.frame(c).columns == ["id", "time_us", "person", "action", "subject", "about"]
