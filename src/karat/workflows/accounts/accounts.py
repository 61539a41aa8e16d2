"""Accounts: coming in, going out, and what is kept of it. Secrets are kept as hashes only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Callable
from contextlib import suppress

import polars as pl
import sqlalchemy as sa

from karat.errors import KaratError, UsageError, nearest
from karat.store.sql import audit, people, sessions
from karat.store.sql.opening import Store
from karat.store.sql.people import Invitation, PersonRow
from karat.store.sql.sessions import SessionRow
from karat.tables.accounts.people import ROLES, Person, Role
from karat.workflows.accounts import _rate_limit
from karat.workflows.accounts._passwords import Busy, Passwords, SignInRefused
from karat.workflows.accounts._rate_limit import Try, try_of
from karat.workflows.accounts.tokens import STEP_US, Secret, Tokens, hashed, named

__all__ = ["Accounts", "Secret", "SignInRefused"]

SESSION_US = 14 * 86_400_000_000
"""How long a session lasts after it was last used: two weeks."""
LONGEST_US = 90 * 86_400_000_000
"""How long a session lasts at most."""
INVITED_US = 7 * 86_400_000_000
"""How long an invitation is good: a week."""
SERVER = "the server"
"""Who did what nobody else did, as the audit calls it."""
DEVICE_US = 365 * 86_400_000_000
"""How long a browser in which somebody came in is known by it: a year."""
_LINK_US = 86_400_000_000
_TYPED = "(command line)"  # how the audit calls whoever types at the server


class AlreadyInvited(UsageError):
    """Somebody has an open invitation, which was not to be replaced.

    Args:
        there: The open invitation.
    """

    def __init__(self, there: Invitation) -> None:
        super().__init__(
            f"{there.name} already has an open invitation",
            fix="replace it, and the first link stops working; or leave it as it is",
        )
        self.there = there


class Accounts(Tokens):
    """Who may come in, of one store.

    Args:
        store: The store.
        clock: Gives microseconds UTC, now.

    Raises:
        MissingExtra: argon2-cffi is not installed.
    """

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        super().__init__(store, clock)
        self._passwords = Passwords()

    # Accounts.

    def everybody(self) -> list[PersonRow]:
        """Everybody, by name."""
        with self.store.read() as c:
            return people.everybody(c, self.clock())

    def by_name(self, name: str) -> Person:
        """Somebody.

        Raises:
            UsageError: there is nobody of this name.
        """
        with self.store.read() as c:
            found = people.find(c, name)
        if found is None:
            names = [row.person.name for row in self.everybody()]
            raise UsageError(f"there is nobody called {name!r}", nearest=nearest(name, names, 1))
        return found

    def local(self, name: str) -> Person:
        """Whoever uses a server on this machine alone: an owner, made if absent.

        Raises:
            UsageError: there is an account of this name that is no owner's, or was shut out. It
                would be one ever after, with its password, on a server that others reach.
        """
        name = named(name)
        with self.store.begin() as c:
            found = people.find(c, name)
            if found is None:
                self.note(c, SERVER, "make account", name, {"role": "owner"})
                return people.add(c, name, "owner", None, self.clock())
            if found.role != "owner" or people.shut_out(c, found.id):
                raise UsageError(
                    f"the account called {name!r} is no owner's, or was shut out",
                    fix="serve as another name; or karat people role NAME owner, and let-in NAME",
                )
            return found

    def invite(
        self,
        name: str,
        role: Role,
        by: str = SERVER,
        secret: str | None = None,
        *,
        replace: bool = True,
    ) -> Secret:
        """Invite somebody; the secret is the end of their link. An earlier link stops working.

        Args:
            name: Who.
            role: As what.
            by: Who invites.
            secret: The one to use, for one wish; a second time the invitation is there already.
                None for any.
            replace: Whether an open invitation may be replaced.

        Raises:
            AlreadyInvited: there is an open invitation, which is not to be replaced.
            UsageError: no name, no such role, or the name is taken.
        """
        name = named(name)
        if name.casefold() == SERVER or name.casefold().endswith(_TYPED):
            raise UsageError(f"{name!r} is how the audit calls the server", fix="choose another")
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}", nearest=nearest(role, ROLES) or ROLES)
        with self.store.begin() as c:
            taken = people.looks_like(c, name)
            if taken is not None:
                raise UsageError(f"there is an account called {taken!r}", fix="choose another name")
            return self._invite(c, name, role, by, "invite", secret, replace=replace)

    def renew(self, name: str, by: str = SERVER, secret: str | None = None) -> Secret:
        """A link by which somebody who has an account chooses a password; see ``invite``.

        Raises:
            UsageError: nobody of this name, or they were shut out.
        """
        person = self.by_name(name)
        with self.store.begin() as c:
            if people.shut_out(c, person.id):
                raise UsageError(f"{name} was shut out", fix="let them in first")
            return self._invite(c, person.name, person.role, by, "give a new password to", secret)

    def _invite(
        self,
        c: sa.Connection,
        name: str,
        role: Role,
        by: str,
        action: str,
        given: str | None,
        *,
        replace: bool = True,
    ) -> Secret:
        secret, now = given or secrets.token_urlsafe(32), self.clock()
        sessions.in_turn(c)
        there = people.invited(c, "account", hashed(secret), now)
        if there is not None:
            return Secret(secret, there.id)
        earlier = next((row for row in people.invitations(c, now) if row.name == name), None)
        if earlier is not None and not replace:
            raise AlreadyInvited(earlier)
        how = {"made_by": by, "now": now, "ends_us": now + INVITED_US}
        made = people.invite(c, "account", hashed(secret), name, role, **how)  # type: ignore[arg-type]
        self.note(c, by, action, name, {"role": role})
        return Secret(secret, made, replaced=earlier is not None)

    def invitation(self, secret: str) -> Invitation | None:
        """The invitation of a link.

        None if it was used, withdrawn, or has ended, or who made it may invite nobody any more.
        """
        with self.store.read() as c:
            return self._invited(c, secret)

    def _invited(self, c: sa.Connection, secret: str) -> Invitation | None:
        found = people.invited(c, "account", hashed(secret), self.clock())
        return found if found is not None and people.may_invite(c, found.made_by) else None

    def invitations(self) -> list[Invitation]:
        """Invitations that nobody has followed yet."""
        with self.store.read() as c:
            return people.invitations(c, self.clock())

    def withdraw(self, invitation_id: int, by: str) -> None:
        """Withdraw an invitation; one that is not good any more stays so."""
        with self.store.begin() as c:
            name = people.withdraw(c, invitation_id, self.clock())
            if name is not None:
                self.note(c, by, "withdraw invitation of", name)

    def accept(self, secret: str, password: str) -> Person:
        """Make the account of an invitation; or give it its new password.

        With a new password its sessions end, and its tokens for programs are revoked: whoever took
        the old one may hold some.

        Raises:
            UsageError: the invitation is not good, or the password is too short or too long.
            SignInRefused: too many passwords are looked at just now.
        """
        gone = UsageError("the invitation is not good any more", fix="ask for a new one")
        if self.invitation(secret) is None:
            raise gone
        made = self._passwords.hashed(password)
        with self.store.begin() as c:
            found = self._invited(c, secret)
            if found is None or not people.use(c, found.id, self.clock()):
                raise gone
            held = people.find(c, found.name) if found.renews else None
            if held is None:
                person = people.add(c, found.name, found.role, made, self.clock())
                self.note(c, person.name, "accept invitation", person.name)
                return person
            people.set_password(c, held.id, made)
            sessions.end_all(c, held.id)
            sessions.revoke_all(c, held.id, self.clock())
            self.note(c, held.name, "choose a new password", held.name)
        return held

    def set_role(self, name: str, role: Role, by: str) -> None:
        """Give somebody another role; they are signed out, and links they made are withdrawn.

        Raises:
            UsageError: nobody of this name, no such role, or the last owner.
        """
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}", nearest=nearest(role, ROLES) or ROLES)
        person = self.by_name(name)
        with self.store.begin() as c:
            people.set_role(c, person.id, role)
            sessions.end_all(c, person.id)
            people.withdraw_all(c, person.name, self.clock())
            self.note(c, by, "set role", name, {"role": role})

    def disable(self, name: str, by: str) -> None:
        """Shut somebody out at once, with every session and token; what they judged stays.

        Links that they made, and those for them, are withdrawn.

        Raises:
            UsageError: nobody of this name, or the last owner.
        """
        person = self.by_name(name)
        with self.store.begin() as c:
            people.disable(c, person.id, self.clock())
            people.withdraw_all(c, person.name, self.clock())
            self.note(c, by, "shut out", name)

    def enable(self, name: str, by: str) -> None:
        """Let somebody in again.

        Raises:
            UsageError: nobody of this name.
        """
        person = self.by_name(name)
        with self.store.begin() as c:
            people.disable(c, person.id, None)
            self.note(c, by, "let in again", name)

    # Coming in and going out.

    def link(self, person: Person) -> str:
        """The secret of a link that lets somebody in, once, within a day."""
        secret, now = secrets.token_urlsafe(32), self.clock()
        with self.store.begin() as c:
            people.invite(
                c,
                "link",
                hashed(secret),
                person.name,
                person.role,
                made_by=None,
                now=now,
                ends_us=now + _LINK_US,
            )
        return secret

    def follow(self, secret: str) -> Person | None:
        """Whoever a one-time link lets in; None if it is not good."""
        with self.store.begin() as c:
            found = people.invited(c, "link", hashed(secret), self.clock())
            if found is None or not people.use(c, found.id, self.clock()):
                return None
            self.note(c, found.name, "sign in", found.name, {"by": "link"})
            return people.find(c, found.name)

    def sign_in(self, name: str, password: str, address: str, device: str | None = None) -> Person:
        """Somebody, by name and password.

        After some failures (``tries.LIMITS``) the next try has to wait: a second, two, four, up to
        a quarter of an hour.

        Args:
            name: As it was typed.
            password: As it was typed.
            address: Where they come from.
            device: What ``device`` gave their browser when they came in before: what others did
                does not keep them out.

        Raises:
            SignInRefused: one of the two is wrong (it is never said which), there were too many
                tries, or too many sign in just now.
        """
        name = _typed(name)
        with self.store.read() as c:
            held = people.password_of(c, name)
        known = held is not None and device is not None and self._known(device, *held)
        tried = try_of(name, address, self.clock(), known=known)
        if not self._right(tried, None if held is None else held[1], password) or held is None:
            raise SignInRefused("the name or the password is wrong")
        newer = None
        if self._passwords.is_old(held[1]):
            with suppress(Busy):  # another time
                newer = self._passwords.hashed(password)
        with self.store.begin() as c:
            _rate_limit.forgive(c, tried)
            if newer is not None:
                people.set_password(c, held[0].id, newer)
            self.note(c, held[0].name, "sign in", name)
        return held[0]

    def has_password(self, person: Person) -> bool:
        """Whether somebody can sign in by a password."""
        with self.store.read() as c:
            return people.password_of(c, person.name) is not None

    def device(self, person: Person) -> str | None:
        """By what a browser is known in which somebody has come in; None without a password.

        It is signed with the hash of the password, and is good until that changes.
        """
        with self.store.read() as c:
            held = people.password_of(c, person.name)
        if held is None:
            return None
        what = f"{person.id}.{self.clock()}"
        return f"{what}.{_signed(what, held[1])}"

    def _known(self, device: str, person: Person, held: str) -> bool:
        what, _, signature = device[:200].rpartition(".")
        if not hmac.compare_digest(signature.encode(), _signed(what, held).encode()):
            return False
        number, _, since = what.partition(".")
        return number == str(person.id) and self.clock() - int(since) < DEVICE_US

    def _right(self, tried: Try, held: str | None, password: str) -> bool:
        """Whether a password is right: a try, counted before anybody looks.

        Raises:
            SignInRefused: there were too many tries, or too many are looked at just now.
        """
        with self.store.begin() as c:
            wait = _rate_limit.wait(c, tried)
        if wait:
            raise SignInRefused(
                f"too many tries: wait {wait} second{'' if wait == 1 else 's'}", wait_s=wait
            )
        try:
            return self._passwords.right(held, password)
        except Busy:
            with self.store.begin() as c:
                _rate_limit.take_back(c, tried)
            raise

    def confirm(self, person: Person, password: str, wrong: str = "the password is wrong") -> None:
        """See that whoever uses a session knows its password: it may have been taken.

        Raises:
            SignInRefused: they do not, as ``wrong`` says; or there were too many tries.
        """
        tried = Try({"pair": f"password {person.id}"}, self.clock())
        with self.store.read() as c:
            held = people.password_of(c, person.name)
        if not self._right(tried, None if held is None else held[1], password):
            raise SignInRefused(wrong)
        with self.store.begin() as c:
            _rate_limit.forgive(c, tried)

    def start_session(self, person: Person, agent: str) -> str:
        """Begin a session; its secret is the cookie.

        Raises:
            UsageError: they were shut out.
        """
        agent = "".join(c for c in agent[:200] if c.isprintable())
        secret, now = secrets.token_urlsafe(32), self.clock()
        with self.store.begin() as c:
            sessions.begin(c, hashed(secret), person.id, agent, now, now + SESSION_US)
        return secret

    def by_session(self, secret: str) -> Person | None:
        """Whose session it is; None if it is none, or has ended."""
        now = self.clock()
        with self.store.read() as c:
            found = sessions.by_token(c, hashed(secret), now)
        if found is None:
            return None
        person, session = found
        if now - session.seen_us > STEP_US:
            ends = min(now + SESSION_US, session.created_us + LONGEST_US)
            # They may read all the same while another writes for long.
            with suppress(KaratError), self.store.begin() as c:
                sessions.seen(c, session.id, now, ends)
        return person

    def sessions(self, person: Person, session: str | None = None) -> list[SessionRow]:
        """Where somebody is signed in; the session of this secret is ``here``."""
        here = None if session is None else hashed(session)
        with self.store.read() as c:
            return sessions.of_person(c, person.id, self.clock(), here)

    def end_session(self, secret: str) -> None:
        """Sign out."""
        with self.store.begin() as c:
            sessions.end(c, hashed(secret))

    def end_all(self, person: Person, *, tokens: bool = False) -> None:
        """Sign out everywhere; with ``tokens`` no program comes in in their name either."""
        with self.store.begin() as c:
            sessions.end_all(c, person.id)
            self.note(c, person.name, "sign out everywhere", person.name)
            if tokens:
                count = sessions.revoke_all(c, person.id, self.clock())
                self.note(c, person.name, "revoke tokens", person.name, {"tokens": str(count)})

    def change_password(self, person: Person, old: str, new: str, session: str | None) -> None:
        """Change one's password; every other session ends.

        Raises:
            SignInRefused: the old one is wrong, or there were too many tries: a session that was
                taken must not find out the password.
            UsageError: the new one is too short or too long.
        """
        self._passwords.checked(new)
        self.confirm(person, old, "the old password is wrong")
        made = self._passwords.hashed(new)
        with self.store.begin() as c:
            people.set_password(c, person.id, made)
            sessions.end_all(c, person.id, None if session is None else hashed(session))
            self.note(c, person.name, "change password", person.name)

    def done(self) -> pl.DataFrame:
        """Who did what, the newest first; see ``store.sql.audit.frame``."""
        with self.store.read() as c:
            return audit.frame(c)


def _signed(what: str, key: str) -> str:
    return hmac.new(key.encode(), f"device {what}".encode(), hashlib.sha256).hexdigest()


def _typed(name: str) -> str:
    """A name as it is looked up: in the form that is kept, and with nothing no store can hold."""
    name = unicodedata.normalize("NFC", name[:1000]).strip()
    return "".join(c if c.isprintable() else "\ufffd" for c in name)[:200]
