"""URLs are normalised, and private addresses are recognised."""

from ipaddress import ip_address

import pytest

from hark.protocol.tool import ToolError
from hark.tools.web.address import AddressPolicy, is_private, parse_address


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://Docs.Example.COM", "https://docs.example.com/"),
        ("HTTPS://example.com:443/a?b=c#frag", "https://example.com/a?b=c"),
        ("http://example.com.:8080/", "http://example.com:8080/"),
        (" http://example.com/a b ", "http://example.com/a b"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://１２７.０.０.１/", "http://127.0.0.1/"),
        ("http://127。0。0。1/", "http://127.0.0.1/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]/"),
        ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://localhost./", "http://localhost/"),
    ],
)
def test_urls_are_normalised(text: str, url: str) -> None:
    assert parse_address(text).url == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not an http"),
        ("example.com", "not an http"),
        ("file:///etc/passwd", "not an http"),
        ("javascript:alert(1)", "not an http"),
        ("gopher://x/", "not an http"),
        ("http://", "not a host name"),
        ("http://user:secret@example.com/", "user name or password"),
        ("http://example.com\\@evil.example/", "user name or password"),
        ("http://example.com\\.evil.example/", "not a host name"),
        ("http://exa mple.com/", "not a host name"),
        ("http://127%2e0.0.1/", "not a host name"),
        ("http://[fe80::1%25eth0]/", "not an IPv6"),
        ("http://[::1/", "not a valid URL"),
        ("http://example.com:99999/", "not a valid URL"),
        ("http://1.2.3.4.5/", "neither a host name nor an IP address"),
        ("http://999.1.1.1/", "neither a host name nor an IP address"),
        ("http://example.com/\r\nHost: evil", "line breaks"),
        ("http://" + "a" * 300 + ".com/", "not a host name"),
        ("http://x/" + "a" * 9000, "longer than"),
    ],
)
def test_strings_that_are_not_web_urls_are_rejected_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        parse_address(text)


def test_a_relative_url_is_resolved_against_the_url_of_its_page() -> None:
    assert parse_address("../b?x", base_url="https://example.com/a/c/").url == "https://example.com/a/b?x"
    assert parse_address("//other.example/", base_url="https://example.com/").url == "https://other.example/"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.254", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",
        "0.1.2.3",
        "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "168.63.129.16", "192.88.99.1", "203.0.113.5",
        "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "2001:db8::1", "100::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "::127.0.0.1",
        "2a00::5efe:7f00:1", "2a00::200:5efe:a00:1",
    ],
)  # fmt: skip
def test_private_addresses_are_recognised_even_if_wrapped_in_another_address(address: str) -> None:
    assert is_private(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_are_not_private(address: str) -> None:
    assert not is_private(ip_address(address))


@pytest.mark.parametrize(
    ("allow", "host", "port", "address", "is_allowed"),
    [
        ("localhost", "localhost", 80, "127.0.0.1", True),
        ("localhost", "evil.example", 80, "127.0.0.1", False),
        ("localhost:3000", "localhost", 3000, "127.0.0.1", True),
        ("localhost:3000", "localhost", 22, "127.0.0.1", False),
        ("*.lan", "wiki.lan", 80, "192.168.0.7", True),
        ("*.lan", "wiki.lan.example", 80, "192.168.0.7", False),
        ("192.168.0.0/24", "anything", 80, "192.168.0.7", True),
        ("192.168.0.0/24", "anything", 80, "192.168.1.7", False),
        ("::1", "::1", 80, "::1", True),
        ("[::1]:80", "::1", 81, "::1", False),
        ("127.0.0.1", "rebound.example", 80, "127.0.0.1", True),
        ("127.0.0.1:80", "rebound.example", 80, "8.8.8.8", True),
    ],
)
def test_the_allow_list_accepts_hosts_patterns_networks_and_ports(
    allow: str, host: str, port: int, address: str, is_allowed: bool
) -> None:
    assert AddressPolicy(allow=(allow,)).allows(host, port, address) is is_allowed


def test_the_allow_private_setting_allows_every_address() -> None:
    assert AddressPolicy(allow_private=True).allows("x", 80, "169.254.169.254")
