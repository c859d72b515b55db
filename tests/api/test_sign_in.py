"""Sign-in with identity providers: what groups give, that it ends with them, and the attacks on it by their names."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import pytest
from joserfc.jwk import ECKey

from dtrag.adapters.openid import PAUSE_S, OpenIdProvider
from dtrag.assembly import sign_in_file
from dtrag.core.access.sign_in import MAX_GROUPS, SignInFile
from dtrag.delivery.api.clients import FAILURES_PER_MINUTE
from dtrag.errors import InvalidInput, NotFound, ProviderUnavailable
from dtrag.governance.sign_in import CHECK_AFTER, CHECKED_WITHIN
from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.cases import each
from tests.identity_provider import CLIENT, SECRET, Claims, IdentityProvider
from tests.store import Databases

ORIGIN = "http://localhost:8001"
GROUPS = """
[[provider.group]]
name = "staff"
branches = ["AI/ML"]
[[provider.group]]
name = "pay office"
role = "editor"
branches = ["HR"]
[[provider.group]]
name = "chiefs"
role = "admin"
branches = "all"
"""


def written(folder: Path, providers: Sequence[tuple[str, str, str]]) -> Path:
    """A file with these providers: name, issuer and groups of each."""
    secret = folder / "secret"
    secret.write_text(SECRET + "\n", "utf-8")
    secret.chmod(0o600)
    text = f'origin = "{ORIGIN}"\n' + "".join(
        f'[[provider]]\nname = "{name}"\ntitle = "The {name}"\nissuer = "{issuer}"\nclient_id = "{CLIENT}"\n'
        f'client_secret_file = "{secret}"\nscopes = ["openid", "offline_access"]\n{groups}'
        for name, issuer, groups in providers
    )
    path = folder / "sign-in.toml"
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return path


async def signed_in(browser: httpx2.AsyncClient, provider: IdentityProvider, person: str = "kim") -> Any:
    """The session of the person, who has signed in."""
    sent = await browser.get("/sign-in/university")
    came_back = await browser.get(provider.authorize(sent.headers["location"], person))
    assert (came_back.status_code, came_back.headers["location"]) == (303, "/")
    session = (await browser.get("/session")).json()
    browser.headers["x-csrf-token"] = session["csrf"]
    return session


@dataclass
class Built:
    """A service with one provider, whose people Kim (staff) and Lee (no group) are."""

    house: House
    provider: IdentityProvider
    file: Path

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[httpx2.AsyncClient]:
        """A browser on another machine."""
        async with client_of(self.house.api, {"x-requested-with": "dtrag-page"}, ("203.0.113.9", 1)) as opened:
            yield opened

    async def begun(self, browser: httpx2.AsyncClient, name: str = "university") -> str:
        """The address to which the browser is sent."""
        sent = await browser.get(f"/sign-in/{name}")
        assert sent.status_code == 303
        return sent.headers["location"]

    async def back(self, browser: httpx2.AsyncClient, person: str = "kim") -> str:
        """The address with which the provider sends the browser back after the person has agreed."""
        return self.provider.authorize(await self.begun(browser), person)

    async def signed_in(self, browser: httpx2.AsyncClient, person: str = "kim") -> Any:
        """The session of the person, who has signed in."""
        return await signed_in(browser, self.provider, person)

    def later(self, monkeypatch: pytest.MonkeyPatch, minutes: float) -> None:
        """Move the clock of the sign-in."""
        moment = datetime.now(UTC) + timedelta(minutes=minutes)
        monkeypatch.setattr(self.house.app.sign_in, "_now", lambda: moment)


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as running:
        running.people |= {"kim": ["staff", "chess"], "lee": ["chess"], "boss": ["chiefs"]}
        yield running


@pytest.fixture
async def built(houses: Databases, provider: IdentityProvider, tmp_path: Path) -> AsyncIterator[Built]:
    file = written(tmp_path, [("university", provider.issuer, GROUPS)])
    async with house(houses.settings(sign_in=file)) as running:
        await running.client("admin", None, "admin")
        yield Built(running, provider, file)


async def assert_refused(built: Built, browser: httpx2.AsyncClient, address: str, outcome: str = "refused") -> None:
    """The browser that comes to the address gets no session, and is told why."""
    came = await browser.get(address)
    assert (came.status_code, came.headers["location"]) == (303, f"/?sign-in={outcome}")
    assert "dtrag_session" not in came.headers.get("set-cookie", "")
    assert_failure(await browser.get("/session"), 401)


async def found(client: httpx2.AsyncClient, query: str = "machine learning") -> set[str]:
    """The top categories of what the caller finds."""
    response = await client.post("/search", json={"query": query, "top_k": 20})
    assert response.status_code == 200, response.text
    return {"/".join(result["taxonomy_path"]) for result in response.json()["results"]}


async def test_groups_give_branches(built: Built) -> None:
    async with built.browser() as browser:
        assert (await browser.get("/sign-in")).json() == {
            "providers": [{"name": "university", "title": "The university"}]
        }
        session = await built.signed_in(browser)
        assert {name: session[name] for name in ("kind", "name", "role", "scope", "provider")} == {
            "kind": "session",
            "name": "university/kim",
            "role": "reader",
            "scope": ["AI/ML"],
            "provider": "university",
        }
        assert await found(browser) == {"AI/ML"}
        assert CANARY not in (await browser.post("/search", json={"query": CANARY})).text
        assert_failure(await browser.get("/keys"), 403)
    lines = [line for line in await built.house.audited() if line["action"] == "sign_in"]
    assert [(line["actor"], line["decision"]) for line in lines] == [("university/kim", "done")]


async def test_the_same_key_is_theirs_the_next_time(built: Built) -> None:
    owners = []
    for _ in range(2):
        async with built.browser() as browser:
            await built.signed_in(browser)
            owners.append([key.key_id for key in await built.house.app.keys.every() if key.name == "university/kim"])
    assert len(owners[0]) == 1
    assert owners[0] == owners[1]


async def test_who_has_no_group_stays_out(built: Built) -> None:
    async with built.browser() as browser:
        await assert_refused(built, browser, await built.back(browser, "lee"), "no-access")
    assert [key.name for key in await built.house.app.keys.every()] == ["admin"]


async def test_the_higher_role_does_not_widen_the_branches_of_the_lower(built: Built) -> None:
    built.provider.people["kim"] = ["staff", "pay office"]
    async with built.browser() as browser:
        session = await built.signed_in(browser)
        assert (session["role"], session["scope"]) == ("editor", ["HR"])


async def test_a_key_still_opens_the_page_when_the_provider_is_down(built: Built) -> None:
    built.provider.down = True
    async with built.browser() as browser:
        await assert_refused(built, browser, "/sign-in/university", "unavailable")
        created = await built.house.app.keys.create("spare", None, "admin")
        signed_in = await browser.post("/session", json={"key": created.secret}, headers={"origin": ORIGIN})
        assert signed_in.json()["provider"] is None


@each("refresh", [True, False])
async def test_a_removed_group_ends_the_session(built: Built, monkeypatch: pytest.MonkeyPatch, refresh: bool) -> None:
    built.provider.refresh, built.provider.people["kim"] = refresh, ["staff"]
    built.later(monkeypatch, 0)
    async with built.browser() as browser, built.browser() as other:
        await built.signed_in(browser)
        await built.signed_in(other)
        built.provider.people["kim"] = ["chess"]
        assert await found(browser) == {"AI/ML"}
        built.later(monkeypatch, CHECK_AFTER.total_seconds() / 60 + 0.1)
        assert_failure(await browser.post("/search", json={"query": "machine"}), 401)
        assert_failure(await other.post("/search", json={"query": "machine"}), 401)
        built.provider.people["kim"] = ["staff"]
        await built.signed_in(browser)


async def test_a_changed_group_changes_what_is_seen(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    async with built.browser() as browser:
        await built.signed_in(browser)
        built.provider.people["kim"] = ["pay office"]
        built.later(monkeypatch, CHECK_AFTER.total_seconds() / 60 + 0.1)
        assert await found(browser) == {"HR/Salary"}
        assert (await browser.get("/session")).json()["role"] == "editor"


async def test_a_provider_that_is_down_ends_sessions_after_ten_minutes(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with built.browser() as browser:
        await built.signed_in(browser)
        built.provider.down = True
        built.later(monkeypatch, CHECK_AFTER.total_seconds() / 60 + 0.1)
        assert await found(browser) == {"AI/ML"}
        built.later(monkeypatch, CHECKED_WITHIN.total_seconds() / 60 + 0.1)
        assert_failure(await browser.post("/search", json={"query": "machine"}), 503)
        built.provider.down = False
        built.later(monkeypatch, CHECKED_WITHIN.total_seconds() / 60 + 1)
        assert await found(browser) == {"AI/ML"}


async def test_a_provider_without_an_answer_is_asked_again_after_a_pause(tmp_path: Path) -> None:
    with IdentityProvider() as provider:
        settings = sign_in_file(written(tmp_path, [("university", provider.issuer, GROUPS)])).providers["university"]
    clock = [100.0]
    asked = OpenIdProvider(settings, f"{ORIGIN}/callback", monotonic=lambda: clock[0])
    for moment, reason in (
        (100.0, "ConnectError"),
        (100.0 + PAUSE_S - 1, "a moment ago"),
        (100.0 + PAUSE_S, "Connect"),
    ):
        clock[0] = moment
        with pytest.raises(ProviderUnavailable, match=reason):
            await asked.address("state", "nonce", "challenge")


async def test_a_revoked_person_stays_out(built: Built) -> None:
    async with built.browser() as browser:
        await built.signed_in(browser)
        await built.house.app.keys.revoke("university/kim")
        assert_failure(await browser.get("/session"), 401)
        await assert_refused(built, browser, await built.back(browser), "no-access")
        with pytest.raises(NotFound, match="dtrag keys list"):
            await built.house.app.allow_people("university/lee")
        assert await built.house.app.allow_people("university/kim") == ["university/kim"]
        assert_failure(await browser.get("/session"), 401)  # only a new sign-in opens it
        assert (await built.signed_in(browser))["scope"] == ["AI/ML"]
        assert await built.house.app.allow_people(None) == []


async def test_a_changed_file_changes_rights_at_the_start(built: Built) -> None:
    async with built.browser() as browser:
        await built.signed_in(browser)
        built.file.write_text(built.file.read_text().replace('branches = ["AI/ML"]', 'branches = ["AI/MLOps"]', 1))
        await built.house.app.open_sign_in()
        assert await found(browser) == {"AI/MLOps"}
        built.file.write_text(built.file.read_text().replace('name = "staff"', 'name = "stuff"', 1))
        await built.house.app.open_sign_in()
        assert_failure(await browser.get("/session"), 401)


async def test_groups_of_the_same_name_at_two_providers_are_two_groups(
    houses: Databases, provider: IdentityProvider, tmp_path: Path
) -> None:
    with IdentityProvider() as other:
        other.people["kim"] = ["staff", "chiefs"]
        groups = '[[provider.group]]\nname = "staff"\nbranches = ["학사"]\n'
        file = written(tmp_path, [("university", provider.issuer, GROUPS), ("partner", other.issuer, groups)])
        async with house(houses.settings(sign_in=file)) as running:
            await running.client("admin", None, "admin")
            built = Built(running, other, file)
            async with built.browser() as browser:
                back = other.authorize(await built.begun(browser, "partner"), "kim")
                await browser.get(back)
                session = (await browser.get("/session")).json()
                assert (session["name"], session["scope"], session["role"]) == ("partner/kim", ["학사"], "reader")


async def test_a_chosen_name_does_not_become_another_persons(built: Built) -> None:
    async with built.browser() as first, built.browser() as second:
        await built.signed_in(first)
        built.provider.people["imposter"] = ["pay office"]
        built.provider.claims = lambda claims: claims | {"preferred_username": "kim"}
        session = await built.signed_in(second, "imposter")
        assert session["name"].startswith("university/kim~")
        assert session["scope"] == ["HR"]
        assert await found(first) == {"AI/ML"}


async def test_keys_of_the_provider_may_change(built: Built) -> None:
    async with built.browser() as browser:
        await built.signed_in(browser)
        built.provider.keys = [ECKey.generate_key("P-256", {"kid": "second"})]
        client: Any = built.house.app.sign_in
        monotonic = time.monotonic
        client._providers["university"]._monotonic = lambda: monotonic() + 60
        await built.signed_in(browser)


# The attacks.


async def test_attack_mix_up(built: Built) -> None:
    """The answer of another provider is brought to the place for this one's."""
    async with built.browser() as browser:
        back = await built.back(browser)
        foreign = back.replace(urlencode({"iss": built.provider.issuer}), urlencode({"iss": "https://evil.example"}))
        assert foreign != back
        await assert_refused(built, browser, foreign)
        unnamed = await built.back(browser)
        await assert_refused(built, browser, unnamed.partition("&iss=")[0])


async def test_attack_replay(built: Built) -> None:
    async with built.browser() as browser, built.browser() as again:
        back = await built.back(browser)
        again.cookies.update(browser.cookies)
        assert (await browser.get(back)).headers["location"] == "/"
        await assert_refused(built, again, back)


FORGED: dict[str, Any] = {
    "wrong issuer": lambda claims: claims | {"iss": "https://evil.example"},
    "wrong audience": lambda claims: claims | {"aud": "another service"},
    "several audiences": lambda claims: claims | {"aud": [CLIENT, "another service"]},
    "made for another": lambda claims: claims | {"azp": "another service"},
    "expired": lambda claims: claims | {"exp": int(time.time()) - 120},
    "clock ahead": lambda claims: claims | {"nbf": int(time.time()) + 3_600},
    "issued in the future": lambda claims: claims | {"iat": int(time.time()) + 3_600},
    "another sign-in": lambda claims: claims | {"nonce": "of another sign-in"},
    "no nonce": lambda claims: {name: value for name, value in claims.items() if name != "nonce"},
    "nobody": lambda claims: claims | {"sub": ""},
    "endless": lambda claims: {name: value for name, value in claims.items() if name != "exp"},
}


@each("forgery", FORGED)
async def test_attack_wrong_issuer_audience_time_nonce(built: Built, forgery: str) -> None:
    built.provider.claims = FORGED[forgery]
    async with built.browser() as browser:
        await assert_refused(built, browser, await built.back(browser))


async def test_clocks_may_differ_by_a_minute(built: Built) -> None:
    built.provider.claims = lambda claims: claims | {"exp": int(time.time()) - 30, "iat": int(time.time()) + 30}
    async with built.browser() as browser:
        await built.signed_in(browser)


def _part(header: dict[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()


def _with_hmac(provider: IdentityProvider, claims: Claims, secret: bytes) -> str:
    signed = f"{_part({'alg': 'HS256', 'kid': 'first'})}.{provider.signed(claims).split('.')[1]}"
    digest = hmac.new(secret, signed.encode(), "sha256").digest()
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def _unsigned(provider: IdentityProvider, claims: Claims) -> str:
    head = _part({"alg": "none", "kid": "first"})
    return f"{head}.{provider.signed(claims).split('.')[1]}."


def _with_the_public_key(provider: IdentityProvider, claims: Claims) -> str:
    return _with_hmac(provider, claims, provider.keys[0].as_pem(private=False))


def _with_the_secret(provider: IdentityProvider, claims: Claims) -> str:
    return _with_hmac(provider, claims, SECRET.encode())


def _with_another_key(provider: IdentityProvider, claims: Claims) -> str:
    return provider.signed(claims, ECKey.generate_key("P-256", {"kid": "first"}))


def _changed_afterwards(provider: IdentityProvider, claims: Claims) -> str:
    head, _, signature = provider.signed(claims).split(".")
    return ".".join((head, provider.signed(claims | {"sub": "id-of-boss"}).split(".")[1], signature))


@each("sign", [_unsigned, _with_the_public_key, _with_the_secret, _with_another_key, _changed_afterwards])
async def test_attack_algorithm(built: Built, sign: Any) -> None:
    built.provider.sign = lambda claims: sign(built.provider, claims)
    async with built.browser() as browser:
        await assert_refused(built, browser, await built.back(browser))


async def test_attack_stolen_code(built: Built) -> None:
    """The code of another person is brought with an attempt of one's own: the verifier is not the one of the code."""
    async with built.browser() as victim, built.browser() as thief:
        stolen = dict(parse_qsl(urlsplit(await built.back(victim, "boss")).query))
        own = await built.back(thief)
        answer = dict(parse_qsl(urlsplit(own).query)) | {"code": stolen["code"]}
        await assert_refused(built, thief, f"{own.partition('?')[0]}?{urlencode(answer)}")


async def test_attack_fixation(built: Built) -> None:
    """A link with somebody else's answer signs nobody in, and a cookie that was planted becomes no session."""
    async with built.browser() as attacker, built.browser() as victim:
        await assert_refused(built, victim, await built.back(attacker, "boss"))
        victim.cookies.set("dtrag_session", "A" * 43, domain="localhost.local", path="/")
        planted = victim.cookies.get("dtrag_session")
        await victim.get(await built.back(victim))
        tokens = {cookie.value for cookie in victim.cookies.jar if cookie.name == "dtrag_session"}
        assert tokens - {planted}
        assert_failure(await attacker.get("/session", headers={"cookie": f"dtrag_session={planted}"}), 401)


@each("extra", ["to=//evil.example", "redirect_uri=https://evil.example", "next=https://evil.example/"])
async def test_attack_open_redirect(built: Built, extra: str) -> None:
    async with built.browser() as browser:
        address = (await browser.get(f"/sign-in/university?{extra}", headers={"host": "evil.example"})).headers
        if "location" in address:  # a foreign host is refused, or not believed
            assert "evil" not in address["location"]
        back = await built.back(browser)
        assert (await browser.get(f"{back}&{extra}")).headers["location"] == "/"
        assert "evil" not in (await browser.get(f"/sign-in/university/sign-out?{extra}")).headers["location"]


@each(
    "left_out",
    [
        {"groups": None, "_claim_names": {"groups": "src1"}},
        {"groups": ["staff"], "_claim_names": {"groups": "src1"}},
        {"groups": ["staff"], "hasgroups": True},
        {"groups": ["staff", *(f"group {number}" for number in range(MAX_GROUPS))]},
        {"groups": [["staff"]]},
        {"groups": {"staff": True}},
        {"groups": None},
    ],
)
async def test_attack_group_overflow(built: Built, left_out: dict[str, Any]) -> None:
    built.provider.claims = lambda claims: claims | left_out
    async with built.browser() as browser:
        await assert_refused(built, browser, await built.back(browser))


async def test_attack_logout(built: Built) -> None:
    """Another site cannot sign anybody out, and a cookie is worth nothing after its person has signed out."""
    async with built.browser() as browser, built.browser() as thief:
        session = await built.signed_in(browser)
        thief.cookies.update(browser.cookies)
        del browser.headers["x-csrf-token"]
        assert_failure(await browser.delete("/session"), 403)
        assert await found_in(thief, session["csrf"]) == {"AI/ML"}
        assert (await browser.delete("/session", headers={"x-csrf-token": session["csrf"]})).status_code == 204
        assert_failure(await thief.get("/session"), 401)
        left = (await browser.get("/sign-in/university/sign-out")).headers["location"]
        assert left.startswith(f"{built.provider.issuer}/logout?")
        assert dict(parse_qsl(urlsplit(left).query))["post_logout_redirect_uri"] == f"{ORIGIN}/"


async def found_in(client: httpx2.AsyncClient, csrf: str) -> set[str]:
    client.headers["x-csrf-token"] = csrf
    return await found(client)


async def test_attack_another_person_at_the_next_check(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    async with built.browser() as browser:
        await built.signed_in(browser)
        built.provider.claims = lambda claims: claims | {"sub": "id-of-boss", "groups": ["chiefs"]}
        built.later(monkeypatch, CHECK_AFTER.total_seconds() / 60 + 0.1)
        assert_failure(await browser.get("/session"), 401)


async def test_attack_a_discovery_document_of_another(built: Built) -> None:
    for wrong in (
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": None},
    ):
        built.provider.metadata = wrong
        async with built.browser() as browser:
            await assert_refused(built, browser, "/sign-in/university", "unavailable")


async def test_attempts_of_one_address_are_limited(built: Built) -> None:
    async with built.browser() as browser:
        outcomes = []
        for _ in range(FAILURES_PER_MINUTE + 1):
            came = await browser.get("/sign-in/university/callback?code=x&state=y")
            outcomes.append(came.headers["location"])
        assert outcomes[-1] == "/?sign-in=busy"
    assert "/token" not in built.provider.asked


async def test_what_is_stored_of_tokens_opens_nothing(built: Built) -> None:
    async with built.browser() as browser:
        await built.signed_in(browser)
        stored = await built.house._rows("select encode(sealed, 'escape') as sealed from sessions")
        tokens = [token for token, person in built.provider._tokens.items() if person == "kim"]
        assert tokens
        assert not [token for token in tokens if token in stored[0]["sealed"]]


WRONG = {
    "unknown field": 'origin = "https://a.example"\ncolour = "red"',
    "no provider": 'origin = "https://a.example"',
    "no origin": '[[provider]]\nname = "a"',
}


@each("text", WRONG.values())
def test_a_wrong_file_is_refused_with_what_to_write(text: str) -> None:
    import tomllib

    with pytest.raises(InvalidInput, match=r"sign-in\.toml: "):
        SignInFile.of(tomllib.loads(text), "sign-in.toml")


@each(
    "old, new",
    [
        ("http://127.0.0.1", "http://10.0.0.7"),
        ('name = "university"', 'name = "Uni/versity"'),
        ('role = "editor"', 'role = "public"'),
        ('branches = ["HR"]', "branches = []"),
        ('branches = "all"', 'branches = "everything"'),
        ('"openid", ', ""),
        ('name = "pay office"', 'name = "staff"'),
    ],
)
def test_a_wrong_provider_is_refused(tmp_path: Path, old: str, new: str) -> None:
    import tomllib

    text = written(tmp_path, [("university", "http://127.0.0.1:1/realm", GROUPS)]).read_text()
    assert SignInFile.of(tomllib.loads(text), "sign-in.toml").providers
    assert old in text
    with pytest.raises(InvalidInput, match=r"sign-in\.toml: "):
        SignInFile.of(tomllib.loads(text.replace(old, new)), "sign-in.toml")
