"""Sign-in with identity providers: who comes back, the key that stands for them, and whether that still holds.

A person has a key without a secret, whose role and branches follow the groups that the provider names. While a session
is used, the provider is asked again after `CHECK_AFTER`; one that it has not confirmed for `CHECKED_WITHIN` does not go
on. An administrator who revokes the key keeps the person out, whatever the provider says.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import hashlib
import hmac
import logging
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dtrag.core.access.api_key import (
    PREFIX_LENGTH,
    ROLES,
    Key,
    KeyView,
    Session,
    new_secret,
    new_token,
    prefix_of,
    sealing_key_of,
)
from dtrag.core.access.scope import Grant
from dtrag.core.access.sign_in import GroupRights, Identity, Person, ProviderSettings, SignInFile
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.errors import DtragError, NotFound, ProviderUnavailable, SignInRefused
from dtrag.governance.api_keys import Keys
from dtrag.ports import IdentityProvider, Recorder, Stores, unrecorded

CHECK_AFTER = datetime.timedelta(minutes=5)
CHECKED_WITHIN = datetime.timedelta(minutes=10)
CLAIM = datetime.timedelta(seconds=15)
"""How long one process may take to ask the provider about a session."""
LOOK_S = 0.2
NOT_ALLOWED = "none of your groups has access here. An administrator can add one to the file of the sign-in."
KEPT_OUT = "an administrator has revoked your access."

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """A sign-in that has begun in a browser, which keeps it: a browser that comes back with another one is refused."""

    provider: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)

    @property
    def challenge(self) -> str:
        """What the provider sees of the verifier (RFC 7636, S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def is_answered_by(self, state: str) -> bool:
        """Whether an answer with this state belongs to it."""
        return hmac.compare_digest(self.state.encode(), state.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who has signed in: the key, the token of the session to open, and what that keeps of the provider."""

    key: Key
    token: str = field(repr=False)
    sealed: bytes = field(repr=False)


class SignIn:
    """The sign-in of one app; `providers` are those of the file, by name."""

    def __init__(
        self,
        file: SignInFile,
        providers: Mapping[str, IdentityProvider],
        stores: Stores,
        keys: Keys,
        *,
        rate: int,
        record: Recorder = unrecorded,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self.file = file
        self._providers = providers
        self._people, self._sessions, self._index = stores.people, stores.sessions, stores.index
        self._keys = keys
        self._rate = rate
        self._record = record
        self._now = now

    async def begin(self, name: str) -> tuple[SignInAttempt, str]:
        """A new attempt, and the address at which the browser signs in. Raises `NotFound`, `ProviderUnavailable`."""
        attempt = SignInAttempt(name)
        address = await self._provider(name).address(attempt.state, attempt.nonce, attempt.challenge)
        return attempt, address

    async def admit(self, attempt: SignInAttempt, answer: Mapping[str, str]) -> Admitted:
        """Who came back, from the parameters of the address. Raises `SignInRefused` and `ProviderUnavailable`."""
        provider = self._provider(attempt.provider)
        try:
            identity = await provider.identity(answer, attempt.verifier, attempt.nonce)
            key = await self._admitted(provider.provider, identity)
        except SignInRefused as refused:
            await self._refused(f"{attempt.provider}/", refused)
            raise
        token = new_token()
        await self._allowed(key)  # one that cannot be recorded does not happen
        return Admitted(key, token, provider.seal(identity.tokens, sealing_key_of(token)))

    async def confirmed(self, session: Session, key: Key, token: str) -> None:
        """The provider has confirmed the person of the session in time, now if need be.

        Raises `SignInRefused`, after which the session is ended, and `ProviderUnavailable`.
        """
        checked, now = session.checked_at, self._now()
        if checked is None or abs(now - checked) < CHECK_AFTER:  # abs: a clock that was set back does not stop it
            return
        late = abs(now - checked) >= CHECKED_WITHIN
        if await self._sessions.claim(session.digest, checked, now, now + CLAIM):
            try:
                await self._confirm(session, key, token)
            except SignInRefused as refused:
                await self._sessions.delete(session.digest)
                await self._refused(key.name, refused)
                raise
            except ProviderUnavailable:
                if late:
                    raise
                _LOG.warning("the identity provider cannot be asked; its people go on for a few minutes")
        elif late:
            await self._wait_for_other(session.digest, checked)

    async def apply(self) -> None:
        """Give the keys of all people the rights that the file gives their groups today: after it was changed."""
        for person in await self._people.every():
            provider = self.file.of_issuer(person.issuer)
            key = await self._keys.stored(person.key_id)
            if key is None or key.revoked_at is not None:
                continue
            rights = None if provider is None else provider.rights(person.groups)
            after = _given(key, rights, await self._taxonomy(), self._now())
            if (after.role, after.grant, after.state(self._now())) != (key.role, key.grant, key.state(self._now())):
                await self._people.put(person, after, create=False)
                self._keys.forget()
                await self._allowed(after)

    async def sign_out_address(self, name: str) -> str:
        """Where a browser signs out of the provider; the page, if it has no such place. Raises `NotFound`."""
        back = f"{self.file.origin}/"
        try:
            return await self._provider(name).sign_out_address(back) or back
        except ProviderUnavailable:
            return back

    async def provider_of(self, key: Key) -> str | None:
        """The name of the provider with which the person of the key signs in; None for another key."""
        person = await self._people.of_key(key.key_id)
        provider = None if person is None else self.file.of_issuer(person.issuer)
        return None if provider is None else provider.name

    async def _confirm(self, session: Session, key: Key, token: str) -> None:
        person = await self._people.of_key(key.key_id)
        settings = None if person is None else self.file.of_issuer(person.issuer)
        if person is None or settings is None or session.sealed is None:
            raise SignInRefused(reason="its provider is not used here any more.")
        provider, secret = self._provider(settings.name), sealing_key_of(token)
        identity = await provider.renewed(provider.unseal(session.sealed, secret), person.subject)
        await self._sessions.checked(session.digest, self._now(), provider.seal(identity.tokens, secret))
        now = await self._admitted(settings, identity)
        if (now.role, now.grant) != (key.role, key.grant):
            await self._allowed(now)

    async def _wait_for_other(self, digest: bytes, checked: datetime.datetime) -> None:
        """Another request is asking the provider about the session; this one is too late to go on without it."""
        end = self._now() + CLAIM
        while self._now() < end:
            await asyncio.sleep(LOOK_S)
            session = await self._sessions.get(digest)
            if session is None:
                raise SignInRefused(reason="the provider did not confirm it.")
            if session.checked_at != checked:
                return
        raise ProviderUnavailable(reason="it did not answer.")

    async def _admitted(self, provider: ProviderSettings, identity: Identity) -> Key:
        """The key of the person with the rights of their groups, stored. Raises `SignInRefused`."""
        rights, now = provider.rights(identity.groups), self._now()
        secret = new_secret()
        name = identity.key_name(provider)
        own = hashlib.sha256(f"{provider.issuer}\0{identity.subject}".encode()).hexdigest()[:PREFIX_LENGTH]
        digest = secrets.token_bytes(32)  # of no secret
        key = Key(uuid.uuid4(), name, prefix_of(secret) or "", digest, "reader", None, self._rate, now)
        key = _given(key, rights, await self._taxonomy(), self._now())
        person = Person(key.key_id, provider.issuer, identity.subject, identity.groups, now)
        # Names can be chosen at some providers: one that is taken does not become another person's.
        stored: Key | None = None
        for called in (name, f"{name}~{own}"):
            stored = await self._people.put(person, replace(key, name=called), create=rights is not None)
            if stored is not None:
                break
        self._keys.forget()
        if stored is not None and stored.revoked_at is not None:
            raise SignInRefused(reason=KEPT_OUT)
        if stored is None or rights is None:
            raise SignInRefused(reason=NOT_ALLOWED)
        return stored

    async def _taxonomy(self) -> Taxonomy:
        return (await self._index.snapshot()).taxonomy

    def _provider(self, name: str) -> IdentityProvider:
        provider = self._providers.get(name)
        if provider is None:
            raise NotFound("There is no such identity provider. Open the page and choose one there.")
        return provider

    async def _allowed(self, key: Key) -> None:
        scope = None if key.grant is None else key.grant.as_json()
        await self._record(
            key.name, "sign_in", scope=scope, subjects=[str(key.key_id)], decision="done", details={"role": key.role}
        )

    async def _refused(self, actor: str, refused: SignInRefused) -> None:
        try:
            await self._record(
                actor, "sign_in", scope=None, subjects=(), decision="denied", details={"reason": str(refused)}
            )
        except DtragError:
            _LOG.warning("a refused sign-in could not be recorded", exc_info=True)


def _given(key: Key, rights: GroupRights | None, taxonomy: Taxonomy, now: datetime.datetime) -> Key:
    """The key with these rights; without any it has expired, and can be given some again."""
    if rights is None:
        return replace(key, role="reader", grant=Grant(()), expires_at=now)
    grant = None if rights.branches is None else Grant.of(rights.branches, taxonomy)
    return replace(key, role=rights.role, grant=grant, expires_at=None)


@dataclass(frozen=True, slots=True)
class PersonChange:
    """What a file would change for a person: role and branches now and then; None is nothing.

    `wider`: they could then do or see what they cannot now.
    """

    name: str
    now: KeyView | None
    then: KeyView | None
    wider: bool


@dataclass(frozen=True, slots=True)
class SignInPreview:
    """What a file of the sign-in would do: `missing` are branches that no category has, by provider and group."""

    missing: Mapping[tuple[str, str], tuple[str, ...]]
    people: Mapping[tuple[str, str], int]
    """People known to be in each group, by provider and group."""
    changes: tuple[PersonChange, ...]


async def preview(file: SignInFile, stores: Stores, keys: Keys, now: datetime.datetime) -> SignInPreview:
    """What the file would do for the people who have signed in so far."""
    taxonomy = (await stores.index.snapshot()).taxonomy
    people, changes = Counter[tuple[str, str]](), list[PersonChange]()
    for person in await stores.people.every():
        provider, key = file.of_issuer(person.issuer), await keys.stored(person.key_id)
        if provider is not None:
            people.update((provider.name, group) for group in person.groups & provider.groups.keys())
        if key is None or key.revoked_at is not None:
            continue
        then = _given(key, None if provider is None else provider.rights(person.groups), taxonomy, now)
        old, new = (known.view(now) if known.state(now) == "valid" else None for known in (key, then))
        if old != new:
            changes.append(PersonChange(key.name, old, new, _is_wider(key, then, taxonomy, now)))
    missing = {
        (provider.name, group): tuple(str(path) for path in rights.branches or () if taxonomy.find(path) is None)
        for provider in file.providers.values()
        for group, rights in provider.groups.items()
    }
    return SignInPreview({group: paths for group, paths in missing.items() if paths}, people, tuple(changes))


def _is_wider(before: Key, after: Key, taxonomy: Taxonomy, now: datetime.datetime) -> bool:
    if after.state(now) != "valid":
        return False
    if before.state(now) != "valid" or ROLES.index(after.role) > ROLES.index(before.role):
        return True
    if after.grant is None or before.grant is None:
        return before.grant is not None
    return not after.grant.nodes(taxonomy) <= before.grant.nodes(taxonomy)
