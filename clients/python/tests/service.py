"""The services that tests speak with."""

import contextlib
import http.server
import os
import socket
import threading
import time
import unittest

#: Address of a running Trivet. The tests that need one are skipped without it.
URL = os.environ.get("TRIVET_URL", "")
needs_service = unittest.skipUnless(URL, "TRIVET_URL is not set, for example http://127.0.0.1:8080")


def wait_until(is_true, seconds=30.0):
    """Waits for what no event announces."""
    end = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.01)


class Silent:
    """Accepts connections and never answers."""

    def __enter__(self):
        self._socket = socket.create_server(("127.0.0.1", 0))
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_):
        self._socket.close()


class Answers:
    """Answers every call with the same bytes and closes the connection after each."""

    def __init__(self, body, status=200, headers=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = True

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Proxy:
    """Passes connections on to a service until they are lost: then they stay open, and nothing arrives any more.

    A proxy that is away refuses them until it comes back.
    """

    def __init__(self, address, is_away=False):
        host, port = address.rsplit(":", 1)
        self._target = (host, int(port))
        self._lost = []
        self._is_away = is_away

    def __enter__(self):
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        if not self._is_away:
            self.come_back()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def come_back(self):
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_connections(self):
        """Loses the connections of now. New ones are passed on."""
        for lost in self._lost:
            lost.set()

    def _accept(self):
        while True:
            try:
                incoming, _ = self._listener.accept()
            except OSError:
                return
            outgoing, lost = socket.create_connection(self._target), threading.Event()
            self._lost.append(lost)
            for one, other in ((incoming, outgoing), (outgoing, incoming)):
                threading.Thread(target=_pass_on, args=(one, other, lost), daemon=True).start()


def _pass_on(one, other, lost):
    with contextlib.suppress(OSError), one, other:
        while True:
            received = one.recv(65536)
            if not received:
                return
            if not lost.is_set():
                other.sendall(received)
