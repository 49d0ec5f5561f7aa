"""The services that tests speak with."""

import os
import socket
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
