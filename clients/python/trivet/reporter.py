"""Sends events in batches from a thread, with retries; drops further events when too many wait. Routing never waits for the service."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Deque, List, Sequence

from .client import TrivetError
from .messages import MAX_REASONS, Asker, Event, Reported

_BATCH = 500
#: After a batch was refused and halved, each full batch that is taken raises the limit by this many events.
_BATCH_GROWTH = 10
#: Pauses between tries double up to this many seconds.
_LONGEST_PAUSE = 10.0
_NOT_ALLOWED = ("permission_denied", "unauthenticated")
_LOG_EVERY = 60.0
_logger = logging.getLogger("trivet")


@dataclass(frozen=True)
class ReporterStats:
    """What became of the events so far. `last_error` is the last reason why events were refused or could not be sent."""

    waiting: int
    accepted: int
    refused: int
    dropped: int
    last_error: str


class Reporter:
    """Keeps up to `capacity` events while the service is unavailable; further events are dropped and counted.

    It logs failures at most once a minute, as a warning of the logger "trivet".
    """

    def __init__(self, client: Asker, *, interval: float = 1.0, capacity: int = 10_000) -> None:
        self.dropped = 0
        self.reported = Reported()
        self._client = client
        self._interval = interval
        self._capacity = capacity
        self._events: Deque[Event] = deque()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._batch_limit = _BATCH
        self._taken_since_drop = False
        self._gave_up = False
        self._give_up_at = 0.0
        #: The least number of seconds to the next try after a failure; 0 after a success.
        self._pause = 0.0
        self._last_error = ""
        self._log_again_at = 0.0
        self._thread = threading.Thread(target=self._run, name="trivet-reporter", daemon=True)
        self._thread.start()

    def send(self, events: Sequence[Event]) -> None:
        """Takes events; never waits for the service."""
        with self._changed:
            room = 0 if self._closing.is_set() else self._capacity - len(self._events)
            self._events.extend(events[:room])
            self.dropped += max(0, len(events) - room)
            if len(self._events) >= self._batch_limit:
                self._changed.notify()

    def stats(self) -> ReporterStats:
        """Returns the counts so far and the last error."""
        with self._changed:
            reported = self.reported
            return ReporterStats(len(self._events), reported.accepted, reported.refused, self.dropped, self._last_error)

    def close(self, timeout: float = 5.0) -> Reported:
        """Sends waiting events for at most `timeout` seconds, then drops the rest. Returns what became of all events."""
        with self._changed:
            if not self._closing.is_set():
                self._give_up_at = time.monotonic() + timeout
                self._closing.set()
            self._changed.notify()
        self._thread.join(timeout)
        with self._changed:
            # These counts include a batch whose answer would come later.
            self._gave_up = True
            self.dropped += len(self._events)
            self._events.clear()
            return replace(self.reported)

    def _run(self) -> None:
        while self._wait():
            with self._changed:
                batch = [self._events[i] for i in range(min(self._batch_limit, len(self._events)))]
            if batch:
                self._settle(batch)
            elif self._closing.is_set():
                return

    def _wait(self) -> bool:
        """Waits until a batch is due. Returns False when close() leaves no time to try again."""
        if self._pause > 0:
            return self._wait_to_try_again()
        with self._changed:
            if not self._closing.is_set() and len(self._events) < self._batch_limit:
                self._changed.wait(self._interval)
        return True

    def _wait_to_try_again(self) -> bool:
        """Waits out the pause. Only close() ends it early; events that arrive meanwhile do not."""
        if not self._closing.is_set():
            self._closing.wait(self._pause)
            return True
        if time.monotonic() + self._pause > self._give_up_at:
            return False
        time.sleep(self._pause)
        return True

    def _settle(self, batch: List[Event]) -> None:
        try:
            self._count(batch, self._client.report(batch))
            self._taken_since_drop = True
            if len(batch) == self._batch_limit:
                self._batch_limit = min(self._batch_limit + _BATCH_GROWTH, _BATCH)
            self._pause = 0.0
        except TrivetError as error:
            self._settle_failure(batch, error)
        except Exception as error:  # noqa: BLE001 (without this thread, nothing is reported any more)
            self._drop(batch, repr(error))
            self._pause = 0.0

    def _settle_failure(self, batch: List[Event], error: TrivetError) -> None:
        """Halves a batch that was refused for good, and drops an event that was refused alone. Keeps events that a later try can send.

        Pauses after a drop only if no batch was taken since the last drop, because a bad event must not slow down good ones.
        """
        if error.is_final and len(batch) > 1:
            self._batch_limit, self._pause = len(batch) // 2, 0.0
            return
        is_forbidden = error.code in _NOT_ALLOWED
        if error.is_final or is_forbidden:
            self._drop(batch, str(error))
        else:
            self._warn(str(error))
        if is_forbidden:
            # The refusal was not about the size, and many events may wait.
            self._batch_limit = _BATCH
        tries_at_once = is_forbidden or (error.is_final and (self._taken_since_drop or self._closing.is_set()))
        self._pause = 0.0 if tries_at_once else self._next_pause(error)
        if error.is_final:
            self._taken_since_drop = False

    def _next_pause(self, error: TrivetError) -> float:
        """Returns a pause that grows with each failure and is random, so that gateways do not all come back at once."""
        longest = self._interval if self._closing.is_set() else max(self._interval, _LONGEST_PAUSE)
        pause = min(longest, max(self._interval, 2 * self._pause))
        return max(pause, error.retry_after) * random.uniform(1.0, 1.25)

    def _count(self, batch: List[Event], reported: Reported) -> None:
        with self._changed:
            if self._gave_up:
                return
            self._forget(batch)
            self.reported.accepted += reported.accepted
            self.reported.refused += reported.refused
            self._keep_reasons(reported.reasons)
        if reported.refused > 0:
            self._warn(reported.reasons[0] if reported.reasons else "refused")

    def _drop(self, batch: List[Event], reason: str) -> None:
        """Drops events that the service never takes."""
        with self._changed:
            if self._gave_up:
                return
            self._forget(batch)
            self.dropped += len(batch)
            self._keep_reasons([reason])
        self._warn(reason)

    def _keep_reasons(self, reasons: List[str]) -> None:
        self.reported.reasons = (self.reported.reasons + reasons)[-MAX_REASONS:]

    def _warn(self, reason: str) -> None:
        self._last_error = reason
        now = time.monotonic()
        if now >= self._log_again_at:
            self._log_again_at = now + _LOG_EVERY
            stats = self.stats()
            _logger.warning(
                "Cannot report every event to Trivet: %s (%d wait, %d were accepted, %d refused, %d dropped)",
                *(reason, stats.waiting, stats.accepted, stats.refused, stats.dropped),
            )

    def _forget(self, batch: List[Event]) -> None:
        for _ in batch:
            self._events.popleft()
