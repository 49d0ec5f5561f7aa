"""Calls Predict and ReportBatch over HTTP, with the standard library; an error status is raised as a `TrivetError`."""

from __future__ import annotations

import http.client
import json
import queue
import re
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, TypeVar
from urllib.parse import urlsplit

from .messages import Answer, Event, Input, Reported, encode, report_encoded

_PREDICT = "/prediction.v1.PredictionService/Predict"
_REPORT = "/observation.v1.ObservationService/ReportBatch"
_REPORT_SECONDS = 10.0
#: The longest pause in seconds before a retry, even if the answer asks for a longer one.
_LONGEST_RETRY_AFTER = 300.0
_Decoded = TypeVar("_Decoded")


class TrivetError(Exception):
    """The service refused a call, or did not answer within the deadline. `code` is that of the Connect protocol.

    `retry_after` is the time in seconds after which to try again, 0 if the service does not ask for one. `status` is that of
    HTTP, 0 without one; over gRPC it is 413 for a message that is too large.
    """

    def __init__(self, code: str, message: str, retry_after: float = 0.0, status: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.retry_after = min(retry_after, _LONGEST_RETRY_AFTER)
        self.status = status

    @property
    def is_final(self) -> bool:
        """True if the service never takes the message: it cannot read it, or the message is too large."""
        return self.status in (400, 413) or (self.status == 0 and self.code == "invalid_argument")


class _HttpAnswer(NamedTuple):
    status: int
    content: bytes
    retry_after: str


class Client:
    """A thread-safe client that keeps its connections open.

    `deadline` is in seconds and limits each step of a prediction: to connect, and to wait for the answer. Python cannot limit
    how long the system resolves a name, so give an address where that can be slow.

    A token is sent to another machine over http only with `allows_token_in_clear`, because others on the network can read it.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        *,
        token: Optional[str] = None,
        deadline: float = 0.05,
        allows_token_in_clear: bool = False,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be http://host:port or https://host:port, got {url!r}")
        if token is not None and not allows_token_in_clear:
            _check_private(parts.scheme, parts.hostname)
        self.deadline = deadline
        self._parts = parts
        self._headers: Dict[str, str] = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue()

    def predict(self, model: str, inputs: Sequence[Input]) -> Answer:
        """Predicts for every input; raises TrivetError."""
        try:
            body = encode({"targetModel": model, "inputs": [one.to_json() for one in inputs]})
        except (TypeError, ValueError) as error:
            raise TrivetError("invalid_argument", f"cannot encode the inputs: {error}") from error
        return self._call(_PREDICT, "application/json", body, self.deadline, Answer.from_json)

    def report(self, events: Sequence[Event]) -> Reported:
        """Reports up to 10,000 events; returns once they are durable, or raises TrivetError."""
        return report_encoded(events, encode, self._report)

    def close(self) -> None:
        """Closes idle connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def _report(self, lines: List[str]) -> Reported:
        return self._call(_REPORT, "application/jsonl", "\n".join(lines), _REPORT_SECONDS, Reported.from_json)

    def _call(
        self, path: str, content_type: str, body: str, seconds: float, decode: Callable[[Any], _Decoded]
    ) -> _Decoded:
        end = time.monotonic() + seconds
        try:
            answer = self._exchange(path, content_type, body.encode(), end)
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError: a token or a host name that HTTP cannot carry.
            raise TrivetError("unavailable", f"no answer from {self._parts.netloc}: {error!r}") from error
        return _read(answer, decode)

    def _exchange(self, path: str, content_type: str, body: bytes, end: float) -> _HttpAnswer:
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            return self._send(self._connect(end), path, content_type, body, end)
        try:
            return self._send(connection, path, content_type, body, end)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # Most likely the service closed an idle connection. To send a call again is safe: a repeated event changes nothing.
            return self._send(self._connect(end), path, content_type, body, end)

    def _connect(self, end: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=_left(end))
        return http.client.HTTPConnection(host, port, timeout=_left(end))

    def _send(
        self, connection: http.client.HTTPConnection, path: str, content_type: str, body: bytes, end: float
    ) -> _HttpAnswer:
        try:
            if connection.sock is not None:
                connection.sock.settimeout(_left(end))
            prefix = self._parts.path.rstrip("/")
            connection.request("POST", prefix + path, body, {"Content-Type": content_type, **self._headers})
            if connection.sock is not None:
                connection.sock.settimeout(_left(end))
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        return _HttpAnswer(response.status, content, response.getheader("Retry-After", ""))


def _check_private(scheme: str, host: str) -> None:
    """Raises ValueError unless the connection has TLS or stays on this machine."""
    if scheme != "https" and not re.fullmatch(r"localhost|127(\.\d{1,3}){3}|::1", host):
        raise ValueError(f"Cannot send the token to {host} without TLS: use https, or allows_token_in_clear=True")


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline passed")
    return left


def _read(answer: _HttpAnswer, decode: Callable[[Any], _Decoded]) -> _Decoded:
    # A date, which proxies may send, is ignored: the caller has its own pause.
    retry_after = float(answer.retry_after) if answer.retry_after.isdecimal() else 0.0
    try:
        value = json.loads(answer.content)
    except ValueError as error:
        reason = f"the answer with status {answer.status} is not JSON"
        raise TrivetError("unknown", reason, retry_after, answer.status) from error
    if answer.status != 200:
        refusal = value if isinstance(value, dict) else {}
        code, message = str(refusal.get("code", "unknown")), str(refusal.get("message", value))
        raise TrivetError(code, message, retry_after, answer.status)
    try:
        return decode(value)
    except (LookupError, TypeError, ValueError) as error:
        raise TrivetError("unknown", f"the answer does not come from Trivet: {error!r}") from error
