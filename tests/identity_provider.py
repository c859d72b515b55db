"""An identity provider for tests: OpenID Connect over real HTTP on loopback, and everything that it can do wrong.

    with IdentityProvider() as provider:
        provider.people["kim"] = ["staff"]

`authorize()` is the person at the provider's page: it returns the address to which the browser is sent back. As a
program it prints its issuer, and lets a browser in as the person in its argument, with the groups after it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, Key, KeySet

CLIENT, SECRET = "dtrag", "a secret + of: the client"

Claims = dict[str, Any]


class IdentityProvider:
    """A provider whose `people` have groups. `claims` and `sign` change what its tokens say and how they are signed.

    `refresh`: it gives refresh tokens, each of which can be used once. `down`: it answers with 500. `asked` has the
    paths that were requested, `metadata` changes of the discovery document.
    """

    def __init__(self, *, refresh: bool = True) -> None:
        self.people: dict[str, list[str]] = {}
        self.refresh, self.down = refresh, False
        self.claims: Callable[[Claims], Claims] = lambda claims: claims
        self.sign: Callable[[Claims], str] = self.signed
        self.keys = [ECKey.generate_key("P-256", {"kid": "first"})]
        self.asked: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.says_iss = True
        self._codes: dict[str, dict[str, str]] = {}
        self._tokens: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}/realm"

    def __enter__(self) -> IdentityProvider:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def signed(self, claims: Claims, key: Key | None = None, algorithm: str = "ES256") -> str:
        """An ID token with these claims."""
        key = key or self.keys[-1]
        return jwt.encode({"alg": algorithm, "kid": key.kid}, claims, key, algorithms=[algorithm])

    def authorize(self, address: str, person: str) -> str:
        """The person agrees at the address to which the browser was sent; where it is sent back."""
        assert address.startswith(f"{self.issuer}/authorize?")
        asked = dict(parse_qsl(urlsplit(address).query))
        assert asked["code_challenge_method"] == "S256"
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        code = secrets.token_urlsafe(16)
        self._codes[code] = {**asked, "person": person}
        answer = {"code": code, "state": asked["state"]} | ({"iss": self.issuer} if self.says_iss else {})
        return f"{asked['redirect_uri']}?{urlencode(answer)}"

    def discovery(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "end_session_endpoint": f"{self.issuer}/logout",
            "authorization_response_iss_parameter_supported": self.says_iss,
        } | self.metadata

    def about(self, person: str) -> Claims:
        """What it says about a person."""
        return {"sub": f"id-of-{person}", "preferred_username": person, "groups": self.people[person]}

    def token(self, form: Mapping[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """The answer to a request for tokens."""
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        if pair != f"{CLIENT}:{urlencode({'': SECRET})[1:]}":
            return 401, {"error": "invalid_client"}
        nonce: dict[str, str] = {}
        if form["grant_type"] == "authorization_code":
            begun = self._codes.pop(form["code"], None)
            challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
            if begun is None or begun["code_challenge"] != challenge.rstrip(b"=").decode():
                return 400, {"error": "invalid_grant"}
            if begun["redirect_uri"] != form["redirect_uri"]:
                return 400, {"error": "invalid_grant"}
            person, nonce = begun["person"], {"nonce": begun["nonce"]}
        else:
            person = self._tokens.pop(form["refresh_token"], "")
        if person not in self.people:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300} | self.about(person) | nonce
        access, refresh = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        self._tokens[access] = person
        answer = {"access_token": access, "token_type": "Bearer", "id_token": self.sign(self.claims(claims))}
        if self.refresh:
            self._tokens[refresh] = person
            answer["refresh_token"] = refresh
        return 200, answer

    def userinfo(self, authorization: str) -> tuple[int, dict[str, Any]]:
        """The answer about the person of an access token."""
        person = self._tokens.get(authorization.removeprefix("Bearer "), "")
        return (200, self.claims(self.about(person))) if person in self.people else (401, {"error": "invalid_token"})


def _handler(provider: IdentityProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: dict[str, str]) -> None:
            path = self.path.removeprefix("/realm")
            provider.asked.append(path)
            authorization = self.headers.get("authorization", "")
            if provider.down:
                status, answer = 500, {}
            elif path.startswith("/authorize?"):
                self._redirect(provider.authorize(f"{provider.issuer}{path}", next(iter(provider.people))))
                return
            elif path.startswith("/logout?"):
                self._redirect(dict(parse_qsl(urlsplit(path).query))["post_logout_redirect_uri"])
                return
            elif path == "/.well-known/openid-configuration":
                status, answer = 200, provider.discovery()
            elif path == "/keys":
                status, answer = 200, dict(KeySet(list(provider.keys)).as_dict())
            elif path == "/token":
                status, answer = provider.token(form, authorization)
            elif path == "/userinfo":
                status, answer = provider.userinfo(authorization)
            else:
                status, answer = 404, {}
            sent = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def _redirect(self, address: str) -> None:
            self.send_response(302)
            self.send_header("location", address)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    return Handler


if __name__ == "__main__":
    with IdentityProvider() as running:
        running.issuer = running.issuer.replace("127.0.0.1", "localhost")  # another site than the service
        running.people[sys.argv[1]] = sys.argv[2:]
        sys.stdout.write(f"{running.issuer}\n")
        sys.stdout.flush()
        sys.stdin.read()
