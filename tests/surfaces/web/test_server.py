"""The HTTP server's sockets."""

import socket

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl

from hark.surfaces.web.server import bound_socket


def test_a_socket_is_known_as_tcp_so_that_small_answers_are_sent_at_once() -> None:
    with bound_socket("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken_or_not_ours_is_an_error() -> None:
    with bound_socket("127.0.0.1", 0) as listener:
        for host, port in (("127.0.0.1", listener.getsockname()[1]), ("192.0.2.1", 0)):
            with pytest.raises(OSError):  # noqa: PT011 the words are the system's
                bound_socket(host, port)


def test_uvicorn_has_the_undocumented_interface_that_the_server_extends() -> None:
    """A failure means: check server.py against this uvicorn, then adapt it and the bound in pyproject.toml."""
    methods = {"connection_made", "connection_lost", "data_received", "on_headers_complete", "send_400_response"}
    assert methods <= set(vars(httptools_impl.HttpToolsProtocol))
    assert {"cycle", "loop", "transport"} <= set(httptools_impl.HttpToolsProtocol.__init__.__code__.co_names)
    assert "response_complete" in httptools_impl.RequestResponseCycle.__init__.__code__.co_names
    assert "capture_signals" in vars(uvicorn.Server)
