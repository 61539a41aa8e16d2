"""Accounts, with --deep with real Argon2: who comes in, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from karat.errors import UsageError
from karat.store.sql import people
from karat.store.sql.opening import open_store
from karat.tables.accounts.people import SCOPES
from karat.workflows.accounts import _passwords
from karat.workflows.accounts._passwords import Busy
from karat.workflows.accounts.accounts import LONGEST_US, SESSION_US, Accounts, SignInRefused

NOW = 1_800_000_000_000_000
PASSWORD, NEW = "correct horse battery", "staple of correct horses"


class Held:
    """Accounts in a store of their own, and their clock."""

    def __init__(self, accounts: Accounts) -> None:
        self.accounts, self.now = accounts, NOW


@pytest.fixture(autouse=True)
def _cheap_passwords(deep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of a millisecond; test_passwords.py has the real ones."""
    if not deep:
        cheap = {"time_cost": 1, "memory_cost": 64, "parallelism": 1}
        monkeypatch.setattr(_passwords, "COST", cheap)


@pytest.fixture
def held(tmp_path: Path, new_sqlite: Callable[[Path], str]) -> Iterator[Held]:
    """No account yet."""
    store = open_store(new_sqlite(tmp_path / "karat.db"))
    made: Held
    made = Held(Accounts(store, lambda: made.now))
    yield made
    store.dispose()


def done(accounts: Accounts) -> list[tuple[str, str, str]]:
    """Who did what to whom, the newest first."""
    return accounts.done().select("person", "action", "subject").rows()


def test_a_forgotten_password_is_chosen_anew_by_a_link(held: Held) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    session = accounts.start_session(ann, "")
    held.now += 1
    link = accounts.renew("ann", "olga").text
    assert accounts.accept(link, NEW) == ann
    assert accounts.by_session(session) is None
    with pytest.raises(SignInRefused):
        accounts.sign_in("ann", PASSWORD, "")
    assert accounts.sign_in("ann", NEW, "") == ann
    with pytest.raises(UsageError, match="no longer valid"):
        accounts.accept(link, PASSWORD)
    assert done(accounts)[:3] == [
        ("ann", "sign in", "ann"),
        ("ann", "choose a new password", "ann"),
        ("olga", "give a new password to", "ann"),
    ]


def test_who_is_shut_out_gets_no_new_password(held: Held) -> None:
    accounts = held.accounts
    accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    accounts.accept(accounts.invite("ben", "rater").text, PASSWORD)
    accounts.disable("ben", "ann")
    with pytest.raises(UsageError, match="ben is disabled"):
        accounts.renew("ben")
    with pytest.raises(SignInRefused, match="wrong name or password"):
        accounts.sign_in("ben", PASSWORD, "")
    accounts.enable("ben", "ann")
    assert accounts.sign_in("ben", PASSWORD, "").name == "ben"


def test_changing_the_password_signs_out_every_other_browser(held: Held) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    here, there = accounts.start_session(ann, "here"), accounts.start_session(ann, "there")
    with pytest.raises(UsageError, match="10 to 1,000 characters, got 5"):
        accounts.change_password(ann, PASSWORD, "short", here)
    accounts.change_password(ann, PASSWORD, NEW, here)
    assert accounts.by_session(here) == ann
    assert accounts.by_session(there) is None
    assert [(row.agent, row.here) for row in accounts.sessions(ann, here)] == [("here", True)]


def test_a_taken_session_does_not_find_out_the_password(held: Held) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    for _ in range(5):
        with pytest.raises(SignInRefused, match="old password is wrong"):
            accounts.change_password(ann, "a wrong guess", NEW, None)
    with pytest.raises(SignInRefused, match=r"wait 1 second$"):
        accounts.change_password(ann, PASSWORD, NEW, None)
    held.now += 1_000_000
    accounts.change_password(ann, PASSWORD, NEW, None)


def test_nobody_becomes_an_owner_by_starting_a_server(held: Held) -> None:
    accounts = held.accounts
    assert accounts.local("ann") == accounts.local("ann")
    accounts.accept(accounts.invite("ben", "rater").text, PASSWORD)
    accounts.accept(accounts.invite("cleo", "owner").text, PASSWORD)
    accounts.disable("cleo", "ann")
    for name in ("ben", "cleo"):
        with pytest.raises(UsageError, match="not an owner's, or is disabled"):
            accounts.local(name)
    assert accounts.by_name("ben").role == "rater"
    assert accounts.local("ann").role == "owner"


@pytest.mark.parametrize(
    "name", ["", "  ", "x" * 101, "a\nb", "a\0b", "a\u202eb", "\ud800", "../x"]
)
def test_names_that_nobody_can_read_are_refused(held: Held, name: str) -> None:
    with pytest.raises(UsageError, match="the name of a person"):
        held.accounts.invite(name, "rater")


def test_a_name_and_a_password_are_the_same_from_every_keyboard(held: Held) -> None:
    accounts = held.accounts
    made = accounts.accept(accounts.invite("Zoe\u0308", "rater").text, "cafe\u0301 cafe\u0301s")
    assert made.name == "Zo\u00eb"
    assert accounts.sign_in(" Zo\u00eb ", "caf\u00e9 caf\u00e9s", "") == made
    with pytest.raises(UsageError, match="there is an account called 'Zo\u00eb'"):
        accounts.invite("zo\u00eb", "owner")


def test_roles_are_those_there_are(held: Held) -> None:
    with pytest.raises(UsageError, match="unknown role 'ownr'; did you mean owner"):
        held.accounts.invite("ann", "ownr")  # type: ignore[arg-type]


def test_a_changed_role_signs_out(held: Held) -> None:
    accounts = held.accounts
    accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    ben = accounts.accept(accounts.invite("ben", "engineer").text, PASSWORD)
    session = accounts.start_session(ben, "")
    accounts.set_role("ben", "rater", "ann")
    assert accounts.by_session(session) is None
    with pytest.raises(UsageError, match="last owner"):
        accounts.set_role("ann", "engineer", "ann")
    with pytest.raises(UsageError, match="unknown user 'bn'; did you mean ben"):
        accounts.set_role("bn", "rater", "ann")


def test_tokens_are_good_for_what_their_owner_may(held: Held) -> None:
    accounts = held.accounts
    ben = accounts.accept(accounts.invite("ben", "engineer").text, PASSWORD)
    for scopes, days, said in (
        ([], 90, "the token has no scopes"),
        (["everything"], 90, "unknown scope 'everything'"),
        (["admin"], 90, "the role engineer does not allow the scope 'admin'"),
        (["read"], 0, "1 to 3,650 days"),
        (["read"], -1, "1 to 3,650 days"),
        (["read"], 10**12, "1 to 3,650 days"),
    ):
        with pytest.raises(UsageError, match=said):
            accounts.make_token(ben, "ci", scopes, days)  # type: ignore[arg-type]
    made = accounts.make_token(ben, " ci ", ["write", "read", "read"], 1)
    assert accounts.by_token(made.text) == (ben, ("read", "write"))
    assert [(row.name, row.used_us) for row in accounts.tokens(ben)] == [("ci", NOW)]
    held.now += 86_400_000_000
    assert accounts.by_token(made.text) is None
    assert not accounts.tokens(ben)
    forever = accounts.make_token(ben, "ci", ["read"], None)
    held.now += 10**6 * 86_400_000_000
    assert accounts.by_token(forever.text) is not None
    accounts.revoke(ben, forever.id)
    assert accounts.by_token(forever.text) is None
    with pytest.raises(UsageError, match="you have no token"):
        accounts.revoke(ben, forever.id)
    assert set(SCOPES) == {"judge", "read", "write", "admin"}


def test_a_session_lasts_while_it_is_used_but_not_for_ever(held: Held) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    used, left = accounts.start_session(ann, ""), accounts.start_session(ann, "")
    while held.now + SESSION_US < NOW + LONGEST_US:
        held.now += SESSION_US - 1
        assert accounts.by_session(used) == ann
    assert accounts.by_session(left) is None
    held.now = NOW + LONGEST_US
    assert accounts.by_session(used) is None


def test_whose_invitation_was_withdrawn_stands_in_the_audit(held: Held) -> None:
    accounts = held.accounts
    made = accounts.invite("ben", "rater", "ann")
    accounts.withdraw(made.id, "ann")
    accounts.withdraw(made.id, "ann")
    assert accounts.invitation(made.text) is None
    assert done(accounts) == [("ann", "withdraw invitation of", "ben"), ("ann", "invite", "ben")]


def test_who_is_shut_out_or_made_less_leaves_no_way_in(held: Held) -> None:
    accounts = held.accounts
    accounts.accept(accounts.invite("olga", "owner").text, PASSWORD)
    for name, end in (
        ("eve", lambda: accounts.disable("eve", "olga")),
        ("mal", lambda: accounts.set_role("mal", "rater", "olga")),
    ):
        accounts.accept(accounts.invite(name, "owner", "olga").text, PASSWORD)
        held.now += 1
        ways = [accounts.invite(f"{name} 2", "owner", name), accounts.renew("olga", name)]
        ways.append(accounts.renew(name, name))
        other = accounts.invite(f"{name} 3", "rater", "olga")
        end()
        for way in ways:
            assert accounts.invitation(way.text) is None
            with pytest.raises(UsageError, match="no longer valid"):
                accounts.accept(way.text, NEW)
        assert accounts.accept(other.text, PASSWORD).name == f"{name} 3"
    assert accounts.sign_in("olga", PASSWORD, "").role == "owner"


def test_an_invitation_is_as_good_as_who_made_it(held: Held) -> None:
    accounts = held.accounts
    accounts.accept(accounts.invite("olga", "owner").text, PASSWORD)
    accounts.accept(accounts.invite("ron", "rater").text, PASSWORD)
    made = accounts.invite("eve", "owner", "ron")  # as one of an earlier version may stand there
    with pytest.raises(UsageError, match="no longer valid"):
        accounts.accept(made.text, PASSWORD)
    by_hand = accounts.invite("ann", "rater", "root (command line)")
    assert accounts.accept(by_hand.text, PASSWORD).name == "ann"
    for name in ("The server", "root (command line)"):
        with pytest.raises(UsageError, match="reserved for the server"):
            accounts.invite(name, "rater")


def test_a_new_password_by_link_revokes_tokens(held: Held) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    token = accounts.make_token(ann, "ci", ["read"], None)
    held.now += 1
    accounts.change_password(ann, PASSWORD, NEW, None)
    assert accounts.by_token(token.text) is not None, "as the page of the account says"
    accounts.accept(accounts.renew("ann").text, PASSWORD)
    assert accounts.by_token(token.text) is None


def test_signing_out_everywhere_revokes_tokens_if_one_says_so(held: Held) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    token = accounts.make_token(ann, "ci", ["read"])
    accounts.end_all(ann)
    assert accounts.by_token(token.text) is not None
    accounts.end_all(ann, tokens=True)
    assert accounts.by_token(token.text) is None
    assert done(accounts)[0] == ("ann", "revoke tokens", "ann")


def test_no_password_is_hashed_before_the_try_is_counted(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    for _ in range(5):
        with pytest.raises(SignInRefused, match="old password is wrong"):
            accounts.change_password(ann, "a wrong guess", NEW, None)

    def never(*_args: object) -> None:
        raise AssertionError("hashed")

    for name in ("hashed", "right"):
        monkeypatch.setattr(accounts._passwords, name, never)
    with pytest.raises(SignInRefused, match="wait 1 second"):
        accounts.change_password(ann, PASSWORD, NEW, None)
    with pytest.raises(UsageError, match="no longer valid"):
        accounts.accept("no such link", NEW)


def test_a_try_that_nobody_looked_at_does_not_count(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounts = held.accounts
    accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)

    def busy(*_args: object) -> None:
        raise Busy

    with monkeypatch.context() as patched:
        patched.setattr(accounts._passwords, "right", busy)
        for _ in range(10):
            with pytest.raises(Busy):
                accounts.sign_in("ann", PASSWORD, "192.0.2.1")
    assert accounts.sign_in("ann", PASSWORD, "192.0.2.1").name == "ann"


def test_a_browser_is_known_by_its_signature_for_a_year_and_a_password(held: Held) -> None:
    accounts = held.accounts
    ann = accounts.accept(accounts.invite("ann", "owner").text, PASSWORD)
    ben = accounts.accept(accounts.invite("ben", "rater").text, PASSWORD)
    device, others = accounts.device(ann), accounts.device(ben)
    assert device is not None
    assert accounts.device(accounts.local("zoe")) is None, "without a password nobody signs in"

    def wait(device: str | None) -> int:
        """Seconds that ann waits at an address where somebody guesses her password."""
        for _ in range(6):
            with suppress(SignInRefused):
                accounts.sign_in("ann", "", "192.0.2.1")
        try:
            accounts.sign_in("ann", PASSWORD, "192.0.2.1", device)
        except SignInRefused as refused:
            return refused.wait_s
        return 0

    with pytest.MonkeyPatch.context() as patched:  # it is not Argon2 that is tried here
        patched.setattr(accounts._passwords, "right", lambda _held, given: given == PASSWORD)
        assert wait(device) == 0
        number, since, signature = device.split(".")
        forged = f"{number}.{int(since) + 1}.{signature}"
        for wrong in (None, "", "x", "..", others, forged, f"{device}0", "\u00e9." * 90):
            assert wait(wrong) > 0, wrong
        held.now += 365 * 86_400_000_000
        assert wait(device) > 0
        held.now -= 364 * 86_400_000_000
        assert wait(device) == 0
    accounts.change_password(ann, PASSWORD, NEW, None)
    assert not accounts._known(device, ann, accounts_hash(accounts, "ann"))


def accounts_hash(accounts: Accounts, name: str) -> str:
    """What is kept of somebody's password."""
    with accounts.store.read() as c:
        found = people.password_of(c, name)
    assert found is not None
    return found[1]
