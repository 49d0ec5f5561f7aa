"""Keeps the load of each server, and ranks servers by the score of docs/how-to/route.md."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .messages import Input, Prediction, to_int32

#: Weight of the time to the first token relative to the rest of the answer.
TTFT_WEIGHT = 6
#: Scores this close count as equal.
TIE = 1.05
#: A server that got none of the last EXPLORE_AFTER × (number of servers) requests gets the next one, so that it is measured again.
EXPLORE_AFTER = 50
#: Metrics older than this many seconds do not count: a dead server would look idle forever.
MAX_METRICS_AGE = 5.0
#: A server without requests under way that was not a candidate for this many seconds is forgotten.
FORGET_AFTER = 3600.0
#: A request that its caller did not end within this many seconds counts as ended.
LONGEST_REQUEST = 3600.0


@dataclass(frozen=True)
class Candidate:
    """A server that can take the request."""

    #: Identifies the server.
    address: str
    #: "" or "aggregate", "prefill" or "decode".
    pod_type: str = ""
    #: Share of the prompt that the prefix cache of the server holds, 0 to 1.
    prefix_cache_score: float = 0.0


class _Metrics(NamedTuple):
    waiting: int
    kv_cache_usage: float
    read_at: float


@dataclass
class _Server:
    metrics: Optional[_Metrics] = None
    sent_since_metrics: int = 0
    under_way: int = 0
    tokens: int = 0
    last_sent: int = 0
    asked_at: float = 0.0


class _Request(NamedTuple):
    server: _Server
    prompt_tokens: int
    sent_at: float


@dataclass
class Load:
    """Counts what a router has sent: these numbers are fresh even when the metrics of a server are old. Not thread-safe."""

    max_metrics_age: float = MAX_METRICS_AGE
    clock: Callable[[], float] = time.monotonic
    servers: Dict[str, _Server] = field(default_factory=dict)
    requests: OrderedDict[int, _Request] = field(default_factory=OrderedDict)
    sent: int = 0
    mean_output_tokens: float = 200.0
    forgot_at: float = 0.0

    def of(self, address: str) -> _Server:
        """Returns the server of an address."""
        if address not in self.servers:
            self.servers[address] = _Server(last_sent=self.sent, asked_at=self.clock())
        return self.servers[address]

    def set_metrics(self, address: str, waiting: int, kv_cache_usage: float) -> None:
        """Takes the metrics just read from a server."""
        server = self.of(address)
        server.metrics, server.sent_since_metrics = _Metrics(waiting, kv_cache_usage, self.clock()), 0

    def _metrics_of(self, server: _Server) -> Optional[_Metrics]:
        """Returns the metrics of a server, or None if they are too old."""
        metrics = server.metrics
        return metrics if metrics is not None and self.clock() - metrics.read_at <= self.max_metrics_age else None

    def _find_old(self, candidates: Sequence[Candidate]) -> Set[int]:
        """Returns the positions of the candidates with old metrics; none if all have old ones."""
        servers = [self.of(candidate.address) for candidate in candidates]
        old = {i for i, one in enumerate(servers) if one.metrics is not None and self._metrics_of(one) is None}
        return old if len(old) < len(candidates) else set()

    def _forget_unused(self) -> None:
        now = self.clock()
        if now - self.forgot_at < FORGET_AFTER:
            return
        self.forgot_at = now
        self.servers = {
            address: server
            for address, server in self.servers.items()
            if server.under_way > 0 or now - server.asked_at < FORGET_AFTER
        }

    def ask(self, prompt_tokens: int, candidates: Sequence[Candidate]) -> List[Input]:
        """Returns two inputs for each candidate: input i is candidate i with its present load, input i + n the same candidate idle."""
        self._end_unended()
        self._forget_unused()
        loaded = [self._loaded(i, prompt_tokens, candidate) for i, candidate in enumerate(candidates)]
        idle = [_idle(len(candidates) + i, prompt_tokens, candidate) for i, candidate in enumerate(candidates)]
        return loaded + idle

    def _loaded(self, input_id: int, prompt_tokens: int, candidate: Candidate) -> Input:
        server = self.of(candidate.address)
        server.asked_at = self.clock()
        metrics = self._metrics_of(server)
        # The queue at the last read, plus requests that were sent since then and have not ended.
        waiting = 0 if metrics is None else metrics.waiting + min(server.sent_since_metrics, server.under_way)
        return Input(
            input_id=input_id,
            pod_type=candidate.pod_type,
            input_token_length=prompt_tokens,
            prefix_cache_score=candidate.prefix_cache_score,
            num_request_waiting=to_int32(waiting),
            num_request_running=server.under_way,
            kv_cache_usage=0.0 if metrics is None else metrics.kv_cache_usage,
            inflight_tokens=to_int32(server.tokens),
            server_ip=candidate.address,
        )

    def rank(self, candidates: Sequence[Candidate], predictions: Mapping[int, Prediction]) -> List[int]:
        """Returns the positions of the candidates, best first. Those without a prediction come last, and so do those
        with old metrics unless all have old ones.

        Of the others, a candidate that was not chosen for a long time comes first, so that it is measured again. Otherwise, of those
        within 5 % of the least score, the one with the fewest requests since its last metrics comes first.
        """
        count = len(candidates)
        old = self._find_old(candidates)
        scores = [
            math.inf if i in old else self._score(predictions.get(i), predictions.get(i + count), candidate.address)
            for i, candidate in enumerate(candidates)
        ]
        least = min(scores)
        if math.isinf(least):
            return self.rank_by_load(candidates)
        equal = [i for i in range(count) if scores[i] <= least * TIE]
        best = min(equal, key=lambda i: self.of(candidates[i].address).sent_since_metrics)
        first = self._neglected(candidates, scores)
        return _put_first(best if first is None else first, sorted(range(count), key=scores.__getitem__))

    def _score(self, loaded: Optional[Prediction], idle: Optional[Prediction], address: str) -> float:
        if loaded is None or idle is None:
            return math.inf
        own = TTFT_WEIGHT * loaded.ttft_millis + self.mean_output_tokens * loaded.tpot_millis
        slowdown = max(1.0, loaded.tpot_millis / idle.tpot_millis) if idle.tpot_millis > 0 else 1.0
        score = own + self.of(address).under_way * idle.ttft_millis * slowdown
        return math.inf if math.isnan(score) else score

    def _neglected(self, candidates: Sequence[Candidate], scores: Sequence[float]) -> Optional[int]:
        for i, candidate in enumerate(candidates):
            if scores[i] < math.inf and self.sent - self.of(candidate.address).last_sent > EXPLORE_AFTER * len(candidates):
                return i
        return None

    def rank_by_load(self, candidates: Sequence[Candidate]) -> List[int]:
        """Returns the positions of the candidates without predictions: the fewest requests, waiting and under way, first.

        Those with old metrics come last unless all have old ones.
        """
        old = self._find_old(candidates)

        def requests(i: int) -> Tuple[bool, int]:
            server = self.of(candidates[i].address)
            metrics = self._metrics_of(server)
            return i in old, server.under_way + (0 if metrics is None else metrics.waiting)

        return sorted(range(len(candidates)), key=requests)

    def dispatched(self, address: str, prompt_tokens: int) -> Callable[[int], None]:
        """Counts a request as under way; the function that it returns counts its end."""
        self.sent += 1
        number = self.sent
        server = self.of(address)
        server.last_sent = number
        server.sent_since_metrics += 1
        server.under_way += 1
        server.tokens += prompt_tokens
        self.requests[number] = _Request(server, prompt_tokens, self.clock())
        return lambda output_tokens: self._end(number, output_tokens)

    def _end(self, number: int, output_tokens: int) -> None:
        request = self.requests.pop(number, None)
        if request is not None:
            request.server.under_way -= 1
            request.server.tokens -= request.prompt_tokens
        if output_tokens > 0:
            self.mean_output_tokens += (output_tokens - self.mean_output_tokens) / 100

    def _end_unended(self) -> None:
        """Ends requests that their callers never end, since a server would look busier with each of them."""
        now = self.clock()
        while self.requests:
            number, request = next(iter(self.requests.items()))
            if now - request.sent_at < LONGEST_REQUEST:
                return
            self._end(number, 0)


def _idle(input_id: int, prompt_tokens: int, candidate: Candidate) -> Input:
    return Input(
        input_id=input_id,
        pod_type=candidate.pod_type,
        input_token_length=prompt_tokens,
        prefix_cache_score=candidate.prefix_cache_score,
        server_ip=candidate.address,
    )


def _put_first(first: int, ranked: List[int]) -> List[int]:
    return [first] + [i for i in ranked if i != first]
