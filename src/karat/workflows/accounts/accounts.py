"""Accounts, invitations, sign-in and sessions. Secrets are stored as hashes only."""

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
from karat.tables.accounts.people import ROLES, Invitation, Person, PersonRow, Role, SessionRow
from karat.workflows.accounts import _rate_limit
from karat.workflows.accounts._passwords import Busy, Passwords, SignInRefused
from karat.workflows.accounts._rate_limit import Try, try_of
from karat.workflows.accounts.tokens import STEP_US, Secret, Tokens, hashed, named

__all__ = ["Accounts", "Secret", "SignInRefused"]

SESSION_US = 14 * 86_400_000_000  # a session expires after two weeks without use
LONGEST_US = 90 * 86_400_000_000  # maximum lifetime of a session
INVITED_US = 7 * 86_400_000_000  # an invitation is valid for a week
SERVER = "the server"  # name of the server itself in the audit log
DEVICE_US = 365 * 86_400_000_000  # a browser is recognised for a year after a sign-in
_LINK_US = 86_400_000_000
_TYPED = "(command line)"  # suffix in the audit log of users of the command line


class AlreadyInvited(UsageError):
    """There is an open invitation for this name."""

    def __init__(self, there: Invitation) -> None:
        super().__init__(
            f"{there.name} already has an open invitation",
            fix="replace it (the first link stops working), or leave it",
        )
        self.there = there


class Accounts(Tokens):
    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        super().__init__(store, clock)
        self._passwords = Passwords()

    # Accounts.

    def all_users(self) -> list[PersonRow]:
        with self.store.read() as c:
            return people.all_users(c, self.clock())

    def by_name(self, name: str) -> Person:
        with self.store.read() as c:
            person = people.find(c, name)
        if person is None:
            names = [row.person.name for row in self.all_users()]
            raise UsageError(f"unknown user {name!r}", nearest=nearest(name, names, 1))
        return person

    def local(self, name: str) -> Person:
        """The owner that a server on this machine alone acts as; created if absent.

        An account that is not an owner's, or is disabled, is refused: it would stay an owner, with
        its password, on a server that others reach.
        """
        name = named(name)
        with self.store.begin() as c:
            owner = people.find(c, name)
            if owner is None:
                self.note(c, SERVER, "make account", name, {"role": "owner"})
                return people.add(c, name, "owner", None, self.clock())
            if owner.role != "owner" or people.is_disabled(c, owner.id):
                raise UsageError(
                    f"the account {name!r} is not an owner's, or is disabled",
                    fix="use another name; or karat people role NAME owner, and let-in NAME",
                )
            return owner

    def invite(
        self,
        name: str,
        role: Role,
        by: str = SERVER,
        secret: str | None = None,
        *,
        replace: bool = True,
    ) -> Secret:
        """Invite a user; the secret is the end of their link. An earlier link stops working."""
        name = named(name)
        if name.casefold() == SERVER or name.casefold().endswith(_TYPED):
            raise UsageError(f"the name {name!r} is reserved for the server", fix="choose another")
        if role not in ROLES:
            raise UsageError(f"unknown role {role!r}", nearest=nearest(role, ROLES) or ROLES)
        with self.store.begin() as c:
            taken = people.looks_like(c, name)
            if taken is not None:
                raise UsageError(f"there is an account called {taken!r}", fix="choose another name")
            return self._invite(c, name, role, by, "invite", secret, replace=replace)

    def renew(self, name: str, by: str = SERVER, secret: str | None = None) -> Secret:
        """A link with which a user sets a new password; see ``invite``."""
        person = self.by_name(name)
        with self.store.begin() as c:
            if people.is_disabled(c, person.id):
                raise UsageError(f"{name} is disabled", fix="enable the account first")
            return self._invite(c, person.name, person.role, by, "give a new password to", secret)

    def _invite(
        self,
        c: sa.Connection,
        name: str,
        role: Role,
        by: str,
        action: str,
        chosen_secret: str | None,
        *,
        replace: bool = True,
    ) -> Secret:
        secret, now = chosen_secret or secrets.token_urlsafe(32), self.clock()
        sessions.in_turn(c)
        repeated = people.invited(c, "account", hashed(secret), now)
        if repeated is not None:
            return Secret(secret, repeated.id)
        earlier = next((row for row in people.invitations(c, now) if row.name == name), None)
        if earlier is not None and not replace:
            raise AlreadyInvited(earlier)
        terms = {"made_by": by, "now": now, "ends_us": now + INVITED_US}
        invitation_id = people.invite(c, "account", hashed(secret), name, role, **terms)  # type: ignore[arg-type]
        self.note(c, by, action, name, {"role": role})
        return Secret(secret, invitation_id, replaced=earlier is not None)

    def invitation(self, secret: str) -> Invitation | None:
        """The invitation of a link.

        None if it was used, withdrawn or has expired, or its author may no longer invite.
        """
        with self.store.read() as c:
            return self._invited(c, secret)

    def _invited(self, c: sa.Connection, secret: str) -> Invitation | None:
        invitation = people.invited(c, "account", hashed(secret), self.clock())
        if invitation is None or not people.may_invite(c, invitation.made_by):
            return None
        return invitation

    def invitations(self) -> list[Invitation]:
        with self.store.read() as c:
            return people.invitations(c, self.clock())

    def first_link(self, owner: str) -> str | None:
        """Path of an invitation for the first owner, as ``/invited/…``; ``owner`` is their name.

        None if an owner can sign in or has an open invitation, which a new link would revoke.
        """
        owners = self._owners()
        if any(map(self.has_password, owners)) or self.first_owner() is not None:
            return None
        # Serving on this machine only makes an owner without a password.
        secret = self.renew(owners[0].name) if owners else self.invite(owner, "owner")
        return f"/invited/{secret.text}"

    def first_owner(self) -> Invitation | None:
        """The open invitation of an owner; None if an owner can sign in or none was invited."""
        if any(map(self.has_password, self._owners())):
            return None
        return next((link for link in self.invitations() if link.role == "owner"), None)

    def _owners(self) -> list[Person]:
        active = (row.person for row in self.all_users() if row.disabled_us is None)
        return [person for person in active if person.role == "owner"]

    def withdraw(self, invitation_id: int, by: str) -> None:
        """Withdraw an invitation, if it is still pending."""
        with self.store.begin() as c:
            name = people.withdraw(c, invitation_id, self.clock())
            if name is not None:
                self.note(c, by, "withdraw invitation of", name)

    def accept(self, secret: str, password: str) -> Person:
        """Create the account of an invitation, or set its new password.

        A new password ends all sessions and revokes all tokens, which may be stolen too.
        """
        expired = UsageError("the invitation is no longer valid", fix="ask for a new one")
        if self.invitation(secret) is None:
            raise expired
        password_hash = self._passwords.hashed(password)
        with self.store.begin() as c:
            invitation = self._invited(c, secret)
            if invitation is None or not people.use(c, invitation.id, self.clock()):
                raise expired
            holder = people.find(c, invitation.name) if invitation.renews else None
            if holder is None:
                name, role = invitation.name, invitation.role
                person = people.add(c, name, role, password_hash, self.clock())
                self.note(c, person.name, "accept invitation", person.name)
                return person
            people.set_password(c, holder.id, password_hash)
            sessions.end_all(c, holder.id)
            sessions.revoke_all(c, holder.id, self.clock())
            self.note(c, holder.name, "choose a new password", holder.name)
        return holder

    def set_role(self, name: str, role: Role, by: str) -> None:
        """Change a user's role; they are signed out, and invitations they made are withdrawn."""
        if role not in ROLES:
            raise UsageError(f"unknown role {role!r}", nearest=nearest(role, ROLES) or ROLES)
        person = self.by_name(name)
        with self.store.begin() as c:
            people.set_role(c, person.id, role)
            sessions.end_all(c, person.id)
            people.withdraw_all(c, person.name, self.clock())
            self.note(c, by, "set role", name, {"role": role})

    def disable(self, name: str, by: str) -> None:
        """Disable an account at once, with every session and token; its judgments stay.

        Invitations that the user made, and those for them, are withdrawn.
        """
        person = self.by_name(name)
        with self.store.begin() as c:
            people.disable(c, person.id, self.clock())
            people.withdraw_all(c, person.name, self.clock())
            self.note(c, by, "shut out", name)

    def enable(self, name: str, by: str) -> None:
        person = self.by_name(name)
        with self.store.begin() as c:
            people.disable(c, person.id, None)
            self.note(c, by, "let in again", name)

    # Sign-in and sessions.

    def link(self, person: Person) -> str:
        """The secret of a one-time sign-in link, valid for a day."""
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
        """The user whom a one-time link signs in; None if it is not valid."""
        with self.store.begin() as c:
            invitation = people.invited(c, "link", hashed(secret), self.clock())
            if invitation is None or not people.use(c, invitation.id, self.clock()):
                return None
            self.note(c, invitation.name, "sign in", invitation.name, {"by": "link"})
            return people.find(c, invitation.name)

    def sign_in(self, name: str, password: str, address: str, device: str | None = None) -> Person:
        """The user with this name and password.

        After several failures (``_rate_limit.LIMITS``) the next attempt has to wait: one second,
        two, four, up to a quarter of an hour.
        """
        name = _typed(name)
        with self.store.read() as c:
            account = people.password_of(c, name)
        known = account is not None and device is not None and self._known(device, *account)
        tried = try_of(name, address, self.clock(), known=known)
        right = self._right(tried, None if account is None else account[1], password)
        if not right or account is None:
            raise SignInRefused("wrong name or password")
        new_hash = None
        if self._passwords.is_old(account[1]):
            with suppress(Busy):  # at the next sign-in
                new_hash = self._passwords.hashed(password)
        with self.store.begin() as c:
            _rate_limit.forgive(c, tried)
            if new_hash is not None:
                people.set_password(c, account[0].id, new_hash)
            self.note(c, account[0].name, "sign in", name)
        return account[0]

    def has_password(self, person: Person) -> bool:
        with self.store.read() as c:
            return people.password_of(c, person.name) is not None

    def device(self, person: Person) -> str | None:
        """A value that recognises a browser after a sign-in; None without a password.

        It is signed with the hash of the password, and is valid until that changes.
        """
        with self.store.read() as c:
            account = people.password_of(c, person.name)
        if account is None:
            return None
        value = f"{person.id}.{self.clock()}"
        return f"{value}.{_signed(value, account[1])}"

    def _known(self, device: str, person: Person, password_hash: str) -> bool:
        value, _, signature = device[:200].rpartition(".")
        if not hmac.compare_digest(signature.encode(), _signed(value, password_hash).encode()):
            return False
        number, _, since = value.partition(".")
        return number == str(person.id) and self.clock() - int(since) < DEVICE_US

    def _right(self, tried: Try, stored_hash: str | None, password: str) -> bool:
        """Whether a password is right; the attempt is recorded before it is verified."""
        with self.store.begin() as c:
            wait = _rate_limit.wait(c, tried)
        if wait:
            raise SignInRefused(
                f"too many attempts: wait {wait} second{'' if wait == 1 else 's'}", wait_s=wait
            )
        try:
            return self._passwords.right(stored_hash, password)
        except Busy:
            with self.store.begin() as c:
                _rate_limit.cancel(c, tried)
            raise

    def confirm(self, person: Person, password: str, wrong: str = "the password is wrong") -> None:
        """Check the password of a signed-in user again, as a session may be stolen."""
        tried = Try({"pair": f"password {person.id}"}, self.clock())
        with self.store.read() as c:
            account = people.password_of(c, person.name)
        if not self._right(tried, None if account is None else account[1], password):
            raise SignInRefused(wrong)
        with self.store.begin() as c:
            _rate_limit.forgive(c, tried)

    def start_session(self, person: Person, agent: str) -> str:
        """Start a session; its secret is the cookie."""
        agent = "".join(c for c in agent[:200] if c.isprintable())
        secret, now = secrets.token_urlsafe(32), self.clock()
        with self.store.begin() as c:
            sessions.begin(c, hashed(secret), person.id, agent, now, now + SESSION_US)
        return secret

    def by_session(self, secret: str) -> Person | None:
        """The user of a session; None if it is unknown or has expired."""
        now = self.clock()
        with self.store.read() as c:
            row = sessions.by_token(c, hashed(secret), now)
        if row is None:
            return None
        person, session = row
        if now - session.seen_us > STEP_US:
            ends = min(now + SESSION_US, session.created_us + LONGEST_US)
            # Reading must work while another process holds the write lock.
            with suppress(KaratError), self.store.begin() as c:
                sessions.seen(c, session.id, now, ends)
        return person

    def sessions(self, person: Person, session: str | None = None) -> list[SessionRow]:
        """Sessions of a user; that of this secret is marked ``here``."""
        here = None if session is None else hashed(session)
        with self.store.read() as c:
            return sessions.of_person(c, person.id, self.clock(), here)

    def end_session(self, secret: str) -> None:
        with self.store.begin() as c:
            sessions.end(c, hashed(secret))

    def end_all(self, person: Person, *, tokens: bool = False) -> None:
        """Sign out everywhere; with ``tokens``, revoke the user's tokens too."""
        with self.store.begin() as c:
            sessions.end_all(c, person.id)
            self.note(c, person.name, "sign out everywhere", person.name)
            if tokens:
                count = sessions.revoke_all(c, person.id, self.clock())
                self.note(c, person.name, "revoke tokens", person.name, {"tokens": str(count)})

    def change_password(self, person: Person, old: str, new: str, session: str | None) -> None:
        """Change one's password; every other session ends."""
        self._passwords.checked(new)
        self.confirm(person, old, "the old password is wrong")
        password_hash = self._passwords.hashed(new)
        with self.store.begin() as c:
            people.set_password(c, person.id, password_hash)
            sessions.end_all(c, person.id, None if session is None else hashed(session))
            self.note(c, person.name, "change password", person.name)

    def done(self) -> pl.DataFrame:
        with self.store.read() as c:
            return audit.frame(c)


def _signed(value: str, key: str) -> str:
    return hmac.new(key.encode(), f"device {value}".encode(), hashlib.sha256).hexdigest()


def _typed(name: str) -> str:
    """A typed name in the form that is stored, without characters no database can store."""
    name = unicodedata.normalize("NFC", name[:1000]).strip()
    return "".join(c if c.isprintable() else "\ufffd" for c in name)[:200]
