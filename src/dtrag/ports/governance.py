"""Ports of governance: agents, API keys and the audit log."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Protocol, Unpack

from dtrag.core.access.api_key import Key, Session
from dtrag.core.access.audit_chain import AuditEntry, AuditFilter, AuditOptions, AuditRow, ChainHead
from dtrag.core.access.sign_in import Identity, Person, ProviderSettings
from dtrag.core.agent import Agent, AgentEdition, Spending
from dtrag.core.taxonomy.tree import Taxonomy


class AgentStore(Protocol):
    """Agents, all editions of their manifests, and their spending."""

    async def add(self, agent: Agent) -> None:
        """Store a new agent with its first edition."""

    async def get(self, agent_id: uuid.UUID) -> Agent | None:
        """The agent, or None."""

    async def every(self) -> list[Agent]:
        """All agents, newest first."""

    async def replace(self, agent: Agent, changed_by: str) -> bool:
        """Store `agent` as the next edition; False when the stored edition is not the one before it."""

    async def delete(self, agent_id: uuid.UUID) -> bool:
        """Delete the agent with its editions and spending; False when it does not exist."""

    async def editions(self, agent_id: uuid.UUID) -> list[AgentEdition]:
        """All editions of the agent's manifest, newest first."""

    async def charge(self, agent_id: uuid.UUID, day: date, calls: int, tokens: int, cost: int) -> Spending:
        """Add to the agent's spending on the day and return the new sum. `cost` is in millionths of a won.

        Raises `NotFound`.
        """

    async def spending(self, agent_id: uuid.UUID, day: date) -> Spending:
        """The agent's spending on the day."""

    async def tree(self, version: str) -> Taxonomy | None:
        """A version of the category tree, or None."""


class PublicSpendingStore(Protocol):
    """What the answers to callers without a key have used, by day (UTC)."""

    async def charge(self, day: date, calls: int, tokens: int, cost: int) -> None:
        """Add to the day. `cost` is in millionths of a won."""

    async def spending(self, day: date) -> Spending:
        """The sum of the day."""


class KeyStore(Protocol):
    """API keys: of their secrets only prefixes and digests.

    A public key has the branches that its agent has at the time of the read, and is revoked when the agent is deleted.
    """

    async def add(self, key: Key) -> bool:
        """Store a new key; False when an unrevoked key has its name."""

    async def of_prefix(self, prefix: str) -> Key | None:
        """The key with this prefix, also when it is revoked or expired; or None."""

    async def of_id(self, key_id: uuid.UUID) -> Key | None:
        """The key with this id, also when it is revoked or expired; or None."""

    async def every(self) -> list[Key]:
        """All keys, revoked and expired ones included, newest first."""

    async def any(self) -> bool:
        """Whether a key exists or has existed."""

    async def revoke(self, name: str, now: datetime) -> Key | None:
        """Revoke the unrevoked key with this name; None when there is none."""

    async def used(self, key_id: uuid.UUID, now: datetime, before: datetime) -> None:
        """Set the key's time of last use to `now`, unless it is `before` or later already."""


class RateLimitStore(Protocol):
    """Token buckets that all services of a database share. The bucket of a caller that is not known is full."""

    async def take(self, caller: bytes, rate: int, tokens: int, unspent: int) -> tuple[int, float]:
        """Return `unspent` tokens, then take up to `tokens`: how many were taken, and what is left in the bucket.

        It holds `rate` tokens and refills by as many a minute.
        """


class SessionStore(Protocol):
    """Sessions of the web page: of their tokens only digests. A session is deleted with its key."""

    async def add(self, session: Session, most: int) -> None:
        """Store a new session, and delete the oldest sessions of its key beyond `most`.

        Nothing is stored when there is no key with its prefix.
        """

    async def get(self, digest: bytes) -> Session | None:
        """The session with this digest, also when it has expired; or None."""

    async def use(self, digest: bytes, now: datetime, before: datetime) -> None:
        """Set the time of last use to `now`, unless it is later than `before` already."""

    async def delete(self, digest: bytes) -> bool:
        """Delete the session; False when it does not exist."""

    async def forget(self, now: datetime) -> int:
        """Delete the sessions that have expired; returns their number."""

    async def claim(self, digest: bytes, checked: datetime, now: datetime, until: datetime) -> bool:
        """Whether the caller is to ask the provider about a session last checked at `checked`; no other does then."""

    async def checked(self, digest: bytes, now: datetime, sealed: bytes) -> None:
        """The provider has confirmed the session at `now`; `sealed` is what it is asked with the next time."""


class PeopleStore(Protocol):
    """People who have signed in with an identity provider, each with a key."""

    async def every(self) -> list[Person]:
        """All of them, by issuer and subject."""

    async def of_key(self, key_id: uuid.UUID) -> Person | None:
        """The person for whom this key stands, or None."""

    async def put(self, person: Person, key: Key, *, create: bool) -> Key | None:
        """Store what was found about a person, and the rights of their key; returns the key as it then is.

        Of an unknown person it is `key`, if one is to be created; of others the own one, to which role, branches and
        expiry of `key` are written unless it is revoked. None: none was created, or another key has the name.
        """

    async def allow(self, name: str | None, now: datetime) -> dict[uuid.UUID, str]:
        """Take back the revocation of the person with this key name, or of all people (None); their keys by id.

        The keys stay expired until their people sign in again. Raises `Conflict` when the name was given away.
        """


class IdentityProvider(Protocol):
    """A provider that people sign in with. Every method may raise `ProviderUnavailable`."""

    provider: ProviderSettings

    async def address(self, state: str, nonce: str, challenge: str) -> str:
        """Where a browser signs in: it comes back with `state`, and the identity then is that of `nonce`.

        `challenge` is the SHA-256 of the verifier, base64url without padding.
        """

    async def identity(self, answer: Mapping[str, str], verifier: str, nonce: str) -> Identity:
        """Who came back, from the parameters of the address. Raises `SignInRefused`."""

    async def renewed(self, tokens: Mapping[str, str], subject: str) -> Identity:
        """The same person as they are now. Raises `SignInRefused` when the provider does not confirm them."""

    async def sign_out_address(self, back: str) -> str | None:
        """Where a browser signs out of the provider, too, and is sent `back`; None: there is no such address."""

    def seal(self, tokens: Mapping[str, str], secret: bytes) -> bytes:
        """The tokens, encrypted with 32 bytes."""

    def unseal(self, sealed: bytes, secret: bytes) -> Mapping[str, str]:
        """The inverse of `seal`. Raises `SignInRefused`."""


class Recorder(Protocol):
    """Writes a line of the audit log: `Audit.record`, or `unrecorded`."""

    async def __call__(self, actor: str, action: str, **options: Unpack[AuditOptions]) -> object: ...


async def unrecorded(actor: str, action: str, **line: object) -> None:
    """The `Recorder` of a service without an audit log: does nothing."""


class AuditStore(Protocol):
    """The audit log: lines are added and read, never changed."""

    async def append(self, entries: Sequence[AuditEntry]) -> ChainHead:
        """Append all entries to the chain, or none; durable when this returns. Raises `DatabaseUnavailable`."""

    async def page(self, after: int, limit: int) -> list[AuditRow]:
        """The next `limit` lines with numbers above `after`, in order."""

    async def newest(self, limit: int, filters: AuditFilter) -> list[AuditRow]:
        """The newest `limit` lines that pass the filters; newest first."""


class AuditSpoolStore(Protocol):
    """Files for audit entries that the database cannot take. All methods may raise `OSError`."""

    def add(self, entries: Sequence[AuditEntry]) -> None:
        """Append the entries; durable when this returns."""

    def left(self) -> list[Path]:
        """Files that no other running process writes."""

    def read(self, path: Path) -> list[AuditEntry]:
        """The entries in a file."""

    def remove(self, path: Path) -> None:
        """Delete a file, after its entries have been written to the log."""

    def close(self) -> None:
        """Release the file of this process; another process may move its entries to the log."""
