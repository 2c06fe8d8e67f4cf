"""The HTTP server's sockets."""

import socket

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl

from hark.surfaces.web.server import bind_socket


def test_a_listening_socket_is_created_with_the_tcp_protocol_number() -> None:
    with bind_socket("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_binding_an_unavailable_address_raises_an_error() -> None:
    with bind_socket("127.0.0.1", 0) as listener:
        for host, port in (("127.0.0.1", listener.getsockname()[1]), ("192.0.2.1", 0)):
            with pytest.raises(OSError):  # noqa: PT011 the message comes from the operating system
                bind_socket(host, port)


def test_uvicorn_has_the_undocumented_interface_that_the_server_extends() -> None:
    """If this fails, check server.py against this uvicorn, then adapt it and the version bound in pyproject.toml."""
    methods = {"connection_made", "connection_lost", "data_received", "on_headers_complete", "send_400_response"}
    assert methods <= set(vars(httptools_impl.HttpToolsProtocol))
    assert {"cycle", "loop", "transport"} <= set(httptools_impl.HttpToolsProtocol.__init__.__code__.co_names)
    assert "response_complete" in httptools_impl.RequestResponseCycle.__init__.__code__.co_names
    assert "capture_signals" in vars(uvicorn.Server)
