"""Secrets are random, recognised by their digest only, and a key ends when it should."""

from __future__ import annotations

import datetime
import uuid

from dtrag.core.access.api_key import Key, digest_of, new_secret, opens, prefix_of
from dtrag.core.access.scope import Access

NOW = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def key_of(secret: str, **changed: object) -> Key:
    values: dict[str, object] = {"expires_at": None, "revoked_at": None, **changed}
    return Key(uuid.uuid4(), "k", prefix_of(secret) or "", digest_of(secret), "reader", None, 60, NOW, **values)  # type: ignore[arg-type]


def test_secrets_have_256_random_bits_behind_their_prefix() -> None:
    made = {new_secret() for _ in range(200)}
    assert len(made) == 200
    for secret in made:
        prefix = prefix_of(secret)
        assert prefix is not None and len(prefix) == 8
        assert len(secret.removeprefix(f"dtrag_{prefix}_")) * 6 >= 256


def test_only_the_exact_secret_is_accepted() -> None:
    secret = new_secret()
    key = key_of(secret)
    assert opens(secret, key)
    assert not opens(secret[:-1] + ("A" if secret[-1] != "A" else "B"), key)
    assert not opens(new_secret(), key)
    assert not opens(secret, None)


def test_a_string_of_another_form_is_not_looked_up() -> None:
    for odd in (
        "",
        "dtrag_",
        "dtrag_12345678_",
        new_secret() + "x",
        new_secret().upper(),
        "\ud800",
        new_secret() + "\n",
    ):
        assert prefix_of(odd) is None
        assert not opens(odd, None)


def test_neither_secret_nor_digest_is_displayed() -> None:
    secret = new_secret()
    key = key_of(secret)
    for shown in (repr(key), repr(key.view(NOW))):
        assert secret not in shown and secret[15:] not in shown
        assert repr(key.digest) not in shown and key.digest.hex() not in shown


def test_a_key_is_invalid_after_it_expires_or_is_revoked() -> None:
    secret, hour = new_secret(), datetime.timedelta(hours=1)
    assert key_of(secret).state(NOW) == "valid"
    assert key_of(secret, expires_at=NOW + hour).state(NOW) == "valid"
    assert key_of(secret, expires_at=NOW).state(NOW) == "expired"
    assert key_of(secret, revoked_at=NOW).state(NOW - hour) == "revoked"


def test_the_caller_of_a_key_has_the_grant_of_the_key() -> None:
    assert key_of(new_secret()).caller().access == Access()
