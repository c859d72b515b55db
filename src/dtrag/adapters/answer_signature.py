"""Signs bundles of answers with Ed25519, and verifies them without a database or a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtrag.core.answer_bundle import Bundle, check_contents, read_bundle, signed_bytes
from dtrag.errors import BundleRefused, MissingExtra


def public_key(seed: bytes) -> str:
    """The public key of the installation with this secret, 64 hexadecimal digits. Raises `MissingExtra`."""
    return str(_private(seed).public_key().public_bytes_raw().hex())


def signed(payload: Mapping[str, Any], seed: bytes) -> Bundle:
    """The bundle with the payload and the public key of the secret."""
    whole = {**payload, "public_key": public_key(seed)}
    return Bundle(whole, _private(seed).sign(signed_bytes(whole)).hex())


def verified(data: bytes, key: str | None = None) -> Bundle:
    """The bundle in the file. Raises `BundleRefused` with what is wrong.

    `key` is the public key that its sender is known to have; without one, the bundle only proves that it is unchanged
    since the owner of the key in it signed it.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise MissingExtra(feature="A verified bundle", extra="encryption") from error
    bundle = read_bundle(data)
    own = bundle.payload["public_key"]
    if key is not None and key.strip().lower() != own:
        raise BundleRefused(reason=f"it was signed with another key, {own[:80]}.")
    try:
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(own))
        signer.verify(bytes.fromhex(bundle.signature), signed_bytes(bundle.payload))
    except (InvalidSignature, ValueError):
        check_contents(bundle.payload)  # names the part that differs, if the contents show it
        raise BundleRefused(reason="its signature is not that of its key over this content.") from None
    check_contents(bundle.payload)
    return bundle


def _private(seed: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise MissingExtra(feature="A signed bundle", extra="encryption") from error
    return Ed25519PrivateKey.from_private_bytes(seed)
