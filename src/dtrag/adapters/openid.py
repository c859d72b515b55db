"""`IdentityProvider` over OpenID Connect: the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636).

Addresses and keys come from the provider's discovery document. Only tokens with a signature of the provider's own keys
are believed; what comes back by way of the browser is compared with what was sent.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode

from dtrag.core.access.sign_in import Identity, ProviderSettings, is_safe
from dtrag.errors import InvalidInput, MissingExtra, ProviderUnavailable, SignInRefused

if TYPE_CHECKING:
    import httpx2
    from joserfc.jwk import KeySet

PATIENCE_S = 5.0
"""Longest time for an answer of the provider, in seconds."""
PAUSE_S = 10.0
"""After no answer the provider is not asked for this time, in seconds, so that not every request waits for it."""
MOST_BYTES = 1 << 20
KNOWN_S = 3_600.0
"""Life of what is known about the provider and its keys, in seconds; an unknown key is looked for before."""
LOOK_AGAIN_S = 10.0
"""An unknown key is looked for at most this often, in seconds."""
SKEW_S = 60
"""Difference of the clocks that is tolerated, in seconds."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Signatures with a key that only the provider has: none without one (`none`) or with our secret (HMAC)."""
_KEPT = ("refresh_token", "access_token")
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class OpenIdProvider:
    """Implements `dtrag.ports.IdentityProvider`. `redirect` is the address to which the provider sends browsers back.

    Raises `MissingExtra` without joserfc, and `InvalidInput` for a file of the secret that cannot be read.
    """

    def __init__(
        self,
        provider: ProviderSettings,
        redirect: str,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            import joserfc  # noqa: F401 - here, so that the service says it at its start
        except ImportError as error:
            raise MissingExtra(feature="Sign-in with an identity provider", extra="oidc") from error
        self.provider = provider
        self._redirect = redirect
        self._now, self._monotonic = now, monotonic
        self._secret = _secret(provider)
        self._known: tuple[Mapping[str, Any], float] | None = None
        self._keys: tuple[KeySet, float] | None = None
        self._looking = asyncio.Lock()
        self._silent_at: float | None = None

    async def address(self, state: str, nonce: str, challenge: str) -> str:
        """See `IdentityProvider`."""
        metadata = await self._metadata()
        parameters = {
            "response_type": "code",
            "client_id": self.provider.client_id,
            "redirect_uri": self._redirect,
            "scope": " ".join(self.provider.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return _with(metadata["authorization_endpoint"], parameters)

    async def sign_out_address(self, back: str) -> str | None:
        """See `IdentityProvider`."""
        address = (await self._metadata()).get("end_session_endpoint")
        if not isinstance(address, str) or not is_safe(address):
            return None
        return _with(address, {"client_id": self.provider.client_id, "post_logout_redirect_uri": back})

    async def identity(self, answer: Mapping[str, str], verifier: str, nonce: str) -> Identity:
        """See `IdentityProvider`."""
        metadata = await self._metadata()
        sender = answer.get("iss")
        if sender is None and metadata.get("authorization_response_iss_parameter_supported") is True:
            raise SignInRefused(reason="the answer does not say which provider it is from.")
        if sender is not None and sender != self.provider.issuer:
            raise SignInRefused(reason="the answer is from another provider than the one that was asked.")
        if answer.get("error") or not answer.get("code"):
            raise SignInRefused(reason="the provider did not agree.")
        body = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "redirect_uri": self._redirect,
            "code_verifier": verifier,
        }
        return await self._identity(metadata, await self._tokens(metadata, body), nonce=nonce)

    async def renewed(self, tokens: Mapping[str, str], subject: str) -> Identity:
        """See `IdentityProvider`."""
        metadata = await self._metadata()
        if "refresh_token" in tokens:
            body = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
            answered = {**tokens, **await self._tokens(metadata, body)}
            identity = await self._identity(metadata, answered, subject=subject)
        else:
            about = await self._about(metadata, tokens.get("access_token", ""))
            identity = self._of_claims(about, about, tokens)
        if identity.subject != subject:
            raise SignInRefused(reason="the provider now names another person.")
        return identity

    def seal(self, tokens: Mapping[str, str], secret: bytes) -> bytes:
        """See `IdentityProvider`."""
        from joserfc import jwe
        from joserfc.jwk import OctKey

        sealed = jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, json.dumps(dict(tokens)), OctKey(secret, secret))
        return sealed.encode()

    def unseal(self, sealed: bytes, secret: bytes) -> Mapping[str, str]:
        """See `IdentityProvider`."""
        from joserfc import jwe
        from joserfc.errors import JoseError
        from joserfc.jwk import OctKey

        try:
            opened = jwe.decrypt_compact(sealed, OctKey(secret, secret)).plaintext
        except (JoseError, ValueError) as error:
            raise SignInRefused(reason="what was kept of it cannot be read.") from error
        tokens: Mapping[str, str] = json.loads(opened or b"{}")
        return tokens

    async def _identity(
        self, metadata: Mapping[str, Any], tokens: Mapping[str, Any], *, nonce: str = "", subject: str = ""
    ) -> Identity:
        """The person of a token response; `nonce` of the first one, `subject` of the person of a renewed one."""
        token = tokens.get("id_token")
        if not isinstance(token, str):
            if not subject:
                raise SignInRefused(reason="the provider sent no ID token.")
            claims: Mapping[str, Any] = {"sub": subject}
        else:
            claims = await self._checked(metadata, token)
            if nonce and not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
                raise SignInRefused(reason="the ID token is that of another sign-in.")
        tokens_kept = {name: tokens[name] for name in _KEPT if isinstance(tokens.get(name), str)}
        try:
            return self._of_claims(claims, claims, tokens_kept)
        except SignInRefused:
            if "userinfo_endpoint" not in metadata or "access_token" not in tokens_kept:
                raise
        about = await self._about(metadata, tokens_kept["access_token"])
        if about["sub"] != claims["sub"]:
            raise SignInRefused(reason="two answers of the provider name two persons.")
        return self._of_claims(claims, about, tokens_kept)

    def _of_claims(self, named: Mapping[str, Any], about: Mapping[str, Any], tokens: Mapping[str, str]) -> Identity:
        names = (claims.get(name) for name in ("preferred_username", "name", "email") for claims in (named, about))
        name = next((text for text in names if isinstance(text, str) and text), "")
        return Identity(named["sub"], name, self.provider.groups_in(about), dict(tokens))

    async def _checked(self, metadata: Mapping[str, Any], token: str) -> Mapping[str, Any]:
        """The claims of an ID token of this provider for this service. Raises `SignInRefused`."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        provider = self.provider
        for again in (False, True):
            try:
                decoded = jwt.decode(token, await self._key_set(metadata, again=again), algorithms=ALGORITHMS)
                break
            except InvalidKeyIdError as error:
                if again:
                    raise SignInRefused(reason="the ID token has a key that the provider does not have.") from error
            except (JoseError, ValueError) as error:
                raise SignInRefused(reason="the ID token is not signed by the provider.") from error
        claims = decoded.claims
        registry = jwt.JWTClaimsRegistry(
            now=lambda: int(self._now()),
            leeway=SKEW_S,
            iss={"essential": True, "value": provider.issuer},
            aud={"essential": True, "value": provider.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        try:
            registry.validate(claims)
        except JoseError as error:
            raise SignInRefused(
                reason="the ID token is not for this service, or not of this time. If it happens to everybody, an "
                "administrator compares the clocks of both."
            ) from error
        audience = claims["aud"]
        # With several audiences the one that asked is named (OpenID Connect Core 3.1.3.7).
        wants = isinstance(audience, list) and len(audience) > 1
        if (wants or "azp" in claims) and claims.get("azp") != provider.client_id:
            raise SignInRefused(reason="the ID token was made for another service.")
        if not claims["sub"]:
            raise SignInRefused(reason="the ID token names no person.")
        return claims

    async def _key_set(self, metadata: Mapping[str, Any], *, again: bool) -> KeySet:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        async with self._looking:
            age = self._monotonic() - self._keys[1] if self._keys else KNOWN_S
            if self._keys is None or age >= (LOOK_AGAIN_S if again else KNOWN_S):
                listed = (await self._json("GET", metadata["jwks_uri"])).get("keys")
                signing = [key for key in listed if key.get("use", "sig") == "sig"] if isinstance(listed, list) else []
                try:
                    self._keys = KeySet.import_key_set({"keys": signing}), self._monotonic()
                except (JoseError, ValueError, TypeError) as error:
                    raise ProviderUnavailable(reason="its keys cannot be read.") from error
            return self._keys[0]

    async def _metadata(self) -> Mapping[str, Any]:
        """The discovery document. Raises `ProviderUnavailable`, also when it names another provider."""
        if self._known is not None and self._monotonic() - self._known[1] < KNOWN_S:
            return self._known[0]
        issuer = self.provider.issuer
        metadata = await self._json("GET", issuer.rstrip("/") + "/.well-known/openid-configuration")
        if metadata.get("issuer") != issuer:
            raise ProviderUnavailable(reason=f"it calls itself {str(metadata.get('issuer'))[:100]!r}, not {issuer!r}.")
        for name in _ENDPOINTS:
            if not isinstance(metadata.get(name), str) or not is_safe(metadata[name]):
                raise ProviderUnavailable(reason=f"it names no safe address as {name}.")
        self._known = metadata, self._monotonic()
        return metadata

    async def _tokens(self, metadata: Mapping[str, Any], body: Mapping[str, str]) -> Mapping[str, Any]:
        import httpx2

        if not self._secret:
            return await self._json("POST", metadata["token_endpoint"], {**body, "client_id": self.provider.client_id})
        methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if "client_secret_basic" in methods:
            auth = httpx2.BasicAuth(quote_plus(self.provider.client_id), quote_plus(self._secret))
            return await self._json("POST", metadata["token_endpoint"], body, auth=auth)
        secret = {"client_id": self.provider.client_id, "client_secret": self._secret}
        return await self._json("POST", metadata["token_endpoint"], {**body, **secret})

    async def _about(self, metadata: Mapping[str, Any], access_token: str) -> Mapping[str, Any]:
        """What the provider says about the person of the token. Raises `SignInRefused` and `ProviderUnavailable`."""
        address = metadata.get("userinfo_endpoint")
        if not isinstance(address, str) or not is_safe(address):
            raise SignInRefused(reason="the provider cannot be asked again.")
        about = await self._json("GET", address, headers={"Authorization": f"Bearer {access_token}"})
        if not isinstance(about.get("sub"), str) or not about["sub"]:
            raise SignInRefused(reason="the provider names no person.")
        return about

    async def _json(
        self,
        method: str,
        address: str,
        body: Mapping[str, str] | None = None,
        *,
        auth: httpx2.BasicAuth | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """The JSON object in the response. Raises `SignInRefused` for 400, 401 and 403, else `ProviderUnavailable`."""
        import httpx2

        if self._silent_at is not None and self._monotonic() - self._silent_at < PAUSE_S:
            raise ProviderUnavailable(reason="it did not answer a moment ago.")
        self._silent_at = None
        try:
            # Follows no redirect and no proxy of the environment: secrets go to the address in the file alone.
            async with (
                asyncio.timeout(PATIENCE_S),
                httpx2.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client,
                client.stream(method, address, data=body, headers=headers, auth=auth) as response,
            ):
                content = bytearray()
                async for part in response.aiter_bytes():
                    content += part
                    if len(content) > MOST_BYTES:
                        raise ProviderUnavailable(reason="its answer is longer than 1 MiB.")
        except (httpx2.HTTPError, TimeoutError) as error:
            self._silent_at = self._monotonic()
            raise ProviderUnavailable(reason=f"it did not answer ({type(error).__name__}).") from error
        if response.status_code in {400, 401, 403}:
            raise SignInRefused(reason="the provider did not agree.")
        if response.status_code != 200:
            raise ProviderUnavailable(reason=f"it answered with the status {response.status_code}.")
        try:
            parsed = json.loads(bytes(content))
        except ValueError as error:
            raise ProviderUnavailable(reason="its answer is not JSON.") from error
        if not isinstance(parsed, dict):
            raise ProviderUnavailable(reason="its answer is not a JSON object.")
        return parsed


def _with(address: str, parameters: Mapping[str, str]) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"


def _secret(provider: ProviderSettings) -> str:
    if not provider.secret_file:
        return ""
    try:
        path = Path(provider.secret_file)
        if path.stat().st_mode & 0o077:
            raise InvalidInput(f"Other users can read the secret in {path}. Type: chmod 600 {path}")
        secret = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The secret of the provider {provider.name!r} cannot be read: {error}.") from error
    if not secret:
        raise InvalidInput(f"{path} is empty: it holds the secret of this service at the provider.")
    return secret
