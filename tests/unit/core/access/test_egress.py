"""What may be asked on the web: judged by URL, and by every address that a name stands for."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.access.egress import Destination, allowed_hosts, checked, public, target
from dtrag.errors import EgressBlocked, InvalidInput


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com", Destination("https", "example.com", 443, "/", False)),
        ("HTTP://Example.COM./a?b=c#d", Destination("http", "example.com", 80, "/a?b=c", False)),
        ("https://example.com:443/x", Destination("https", "example.com", 443, "/x", False)),
        ("http://example.com:443/", Destination("http", "example.com", 443, "/", False)),
        ("https://8.8.8.8/", Destination("https", "8.8.8.8", 443, "/", False)),
        ("https://[2606:4700::1111]/", Destination("https", "2606:4700::1111", 443, "/", False)),
        ("https://한국.kr/학?q=칙", Destination("https", "xn--3e0b707e.kr", 443, "/%ED%95%99?q=%EC%B9%99", False)),
        ("https://example.com/a%20b?q=%41", Destination("https", "example.com", 443, "/a%20b?q=%41", False)),
    ],
)
def test_public_urls_are_parsed(url: str, expected: Destination) -> None:
    assert target(url) == expected


def test_the_host_header_contains_a_port_that_is_not_the_default() -> None:
    assert target("https://example.com/").authority == "example.com"
    assert target("http://example.com:443/").authority == "example.com:443"
    assert target("https://[2606:4700::1111]/").authority == "[2606:4700::1111]"
    assert target("https://example.com/a").origin == ("https", "example.com", 443)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.com/", "only http and https"),
        ("//example.com/", "only http and https"),
        ("example.com", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("https://user@example.com/", "user name"),
        ("https://:x@example.com/", "user name"),
        ("https://example.com:8443/", "port 8443 is not 80 or 443"),
        ("https://example.com:0/", "port 0 is not"),
        ("https://example.com:99999/", "not a URL"),
        ("https://[::1", "not a URL"),
        ("https:///path", "not a name"),
        ("https://", "not a name"),
        ("https://exa mple.com/", "spaces"),
        ("https://example.com/\r\nHost: x", "spaces"),
        ("https://example.com\\@127.0.0.1/", "backslashes"),
        ("https://-x.com/", "not a name"),
        ("https://a..b/", "not a name"),
        ("https://" + "a" * 64 + ".com/", "not a name"),
        ("https://example.com/" + "a" * 8_192, "too long"),
    ],
)
def test_an_address_that_is_not_http_or_https_is_refused(url: str, reason: str) -> None:
    with pytest.raises(EgressBlocked, match=reason):
        target(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://10.1.2.3/",
        "http://[::1]/",
        "http://[fe80::1]/",
        "http://[fd00::1]/",
        "http://１２７.０.０.１/",
        "http://①②⑦.⓪.⓪.①/",
        "http://127.0.0.1./",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://example.1/",
    ],
)
def test_private_addresses_are_refused_in_every_notation(url: str) -> None:
    with pytest.raises(EgressBlocked, match=r"not a public address|not a name"):
        target(url)


PRIVATE = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.8.8.8 169.254.169.254 172.16.0.1 172.31.255.255
192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1
255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1
64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::1 fc00::1 fdff::1 fe80::1 fe80::1%eth0 fec0::1
ff02::1 2606:4700::1111%eth0 nonsense ::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8 5f00::1 3fff::1 3fff:fff::1 168.63.129.16
::ffff:168.63.129.16 192.0.0.192 4000::1 1::1 2001:1ff::1 2001:20::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2002:a00:1::1
2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:10.0.0.1 100:0:0:1::1 fe00::1
"""


@pytest.mark.parametrize("address", PRIVATE.split())
def test_addresses_that_are_not_public(address: str) -> None:
    assert not public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "100.63.255.255", "172.32.0.1", "192.167.1.1", "2606:4700::1111", "::ffff:8.8.8.8"),
        *("168.63.129.15", "2001:200::1", "2001:4860:4860::8888", "2620:fe::fe", "2a00:1450:4001::1", "3ffe:831f::1"),
    ],
)
def test_addresses_that_are_public(address: str) -> None:
    assert public(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_inside_an_ipv6_address_is_judged_as_ipv4(address: object) -> None:
    assert public(f"::ffff:{address}") == public(str(address))
    assert not public(str(address)) or ip_address(str(address)).is_global


def test_every_address_of_a_name_has_to_be_public() -> None:
    wanted = target("https://example.com/")
    assert checked(wanted, ["8.8.8.8", "1.1.1.1", "8.8.8.8"]) == ["8.8.8.8", "1.1.1.1"]
    for addresses in (["8.8.8.8", "127.0.0.1"], ["::1"], ["not an address"]):
        with pytest.raises(EgressBlocked, match="resolves to an address that is not public"):
            checked(wanted, addresses)
    with pytest.raises(EgressBlocked, match="does not resolve"):
        checked(wanted, [])


def test_an_exception_is_for_one_host_and_port() -> None:
    allowed = allowed_hosts(" Searx.Internal:8080 , [::1]:9000,127.0.0.1:80,")
    assert allowed == {("searx.internal", 8080), ("::1", 9000), ("127.0.0.1", 80)}
    assert target("http://searx.internal:8080/search", allowed).excepted
    assert target("http://[::1]:9000/", allowed).authority == "[::1]:9000"
    assert checked(target("http://searx.internal:8080/", allowed), ["10.0.0.7"]) == ["10.0.0.7"]
    for url in ("http://searx.internal:8081/", "http://[::1]/", "http://127.0.0.1:8080/"):
        with pytest.raises(EgressBlocked):
            target(url, allowed)
    assert allowed_hosts("") == frozenset()


@pytest.mark.parametrize("text", ["searx.internal", "a:0", "a:65536", "a:b", ":80", "a b:80", "http://a:80", "*:80"])
def test_an_invalid_exception_is_reported(text: str) -> None:
    with pytest.raises(InvalidInput, match="DTRAG_EGRESS_ALLOW holds"):
        allowed_hosts(text)


@given(st.text(max_size=80) | st.text("htps:/.@[]0x127%?#\\", max_size=40).map(lambda end: "http://" + end))
def test_any_text_is_parsed_or_refused(url: str) -> None:
    try:
        wanted = target(url)
    except EgressBlocked:
        return
    assert wanted.path.isascii()
    assert wanted.path.startswith("/")
    assert wanted.host.isascii()
