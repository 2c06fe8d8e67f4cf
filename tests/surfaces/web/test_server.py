"""The HTTP server's sockets."""

import socket

import pytest

from hark.surfaces.web.server import bound_socket


def test_a_socket_is_known_as_tcp_so_that_small_answers_are_sent_at_once() -> None:
    with bound_socket("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken_or_not_ours_is_an_error() -> None:
    with bound_socket("127.0.0.1", 0) as listener:
        for host, port in (("127.0.0.1", listener.getsockname()[1]), ("192.0.2.1", 0)):
            with pytest.raises(OSError):  # noqa: PT011 the words are the system's
                bound_socket(host, port)
