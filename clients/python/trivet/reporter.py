"""Sends events in batches from a thread of its own: routing never waits for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Deque, List, Sequence

from .client import TrivetError
from .messages import MAX_REASONS, Asker, Event, Reported

_BATCH = 500


class Reporter:
    """Keeps up to `capacity` events while the service is away; beyond that it drops events and counts them."""

    def __init__(self, client: Asker, *, interval: float = 1.0, capacity: int = 10_000) -> None:
        self.dropped = 0
        self.reported = Reported()
        self._client = client
        self._interval = interval
        self._capacity = capacity
        self._events: Deque[Event] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._give_up_at = 0.0
        self._thread = threading.Thread(target=self._run, name="trivet-reporter", daemon=True)
        self._thread.start()

    def send(self, events: Sequence[Event]) -> None:
        """Takes events; never waits for the service."""
        with self._changed:
            room = 0 if self._closing else self._capacity - len(self._events)
            self._events.extend(events[:room])
            self.dropped += max(0, len(events) - room)
            if len(self._events) >= _BATCH:
                self._changed.notify()

    def close(self, timeout: float = 5.0) -> Reported:
        """Sends what waits, for at most `timeout` seconds; then drops the rest. Returns what became of all events."""
        with self._changed:
            if not self._closing:
                self._closing = True
                self._give_up_at = time.monotonic() + timeout
            self._changed.notify()
        self._thread.join(timeout)
        with self._changed:
            self.dropped += len(self._events)
            self._events.clear()
        return self.reported

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._closing and len(self._events) < _BATCH:
                    self._changed.wait(self._interval)
                batch = [self._events[i] for i in range(min(_BATCH, len(self._events)))]
                if not batch and self._closing:
                    return
            if not self._settle(batch):
                return

    def _settle(self, batch: List[Event]) -> bool:
        """Sends a batch; false when the service is away and there is no time left to try again."""
        if not batch:
            return True
        try:
            self._count(self._client.report(batch))
        except TrivetError as error:
            if error.code in ("invalid_argument", "unauthenticated", "unimplemented"):
                return self._drop(batch, str(error))
            with self._changed:
                if self._closing and time.monotonic() >= self._give_up_at:
                    return False
                self._changed.wait(self._interval)
            return True
        except Exception as error:  # noqa: BLE001 (without this thread, nothing is reported any more)
            return self._drop(batch, repr(error))
        self._forget(batch)
        return True

    def _count(self, reported: Reported) -> None:
        self.reported.accepted += reported.accepted
        self.reported.refused += reported.refused
        self.reported.reasons = (self.reported.reasons + reported.reasons)[-MAX_REASONS:]

    def _drop(self, batch: List[Event], reason: str) -> bool:
        """The service will never take this batch."""
        self.dropped += len(batch)
        self.reported.reasons = (self.reported.reasons + [reason])[-MAX_REASONS:]
        self._forget(batch)
        return True

    def _forget(self, batch: List[Event]) -> None:
        with self._changed:
            for _ in batch[: len(self._events)]:
                self._events.popleft()
