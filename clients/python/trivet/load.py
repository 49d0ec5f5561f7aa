"""What a router knows of its servers, and the score of docs/how-to/route.md."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from .messages import Input, Prediction

#: Weight of the time to the first token beside the rest of the answer.
TTFT_WEIGHT = 6
#: Scores this close count as equal.
TIE = 1.05
#: A server that got none of this many requests for each server gets the next one, so that it is measured again.
EXPLORE_AFTER = 50


@dataclass(frozen=True)
class Candidate:
    """A server that can take the request."""

    #: Identifies the server.
    address: str
    #: "" or "aggregate", "prefill" or "decode".
    pod_type: str = ""
    #: Share of the prompt that the prefix cache of the server holds, 0 to 1.
    prefix_cache_score: float = 0.0


@dataclass
class _Server:
    waiting: Optional[int] = None
    kv_cache_usage: float = 0.0
    sent_since_metrics: int = 0
    under_way: int = 0
    tokens: int = 0
    last_sent: int = 0

    def queue(self) -> int:
        """The queue when it was read, and what was sent since then and is still there."""
        return 0 if self.waiting is None else self.waiting + min(self.sent_since_metrics, self.under_way)


@dataclass
class Load:
    """Counts what a router has sent: these numbers are fresh when those of a server are old. Not thread-safe."""

    servers: Dict[str, _Server] = field(default_factory=dict)
    sent: int = 0
    mean_output_tokens: float = 200.0

    def of(self, address: str) -> _Server:
        """The server of an address."""
        if address not in self.servers:
            self.servers[address] = _Server(last_sent=self.sent)
        return self.servers[address]

    def set_metrics(self, address: str, waiting: int, kv_cache_usage: float) -> None:
        """Takes what was read from a server just now."""
        server = self.of(address)
        server.waiting, server.kv_cache_usage, server.sent_since_metrics = waiting, kv_cache_usage, 0

    def ask(self, prompt_tokens: int, candidates: Sequence[Candidate]) -> List[Input]:
        """Each candidate twice: input i is candidate i as loaded as it is, input i + n the same candidate idle."""
        loaded = [self._loaded(i, prompt_tokens, candidate) for i, candidate in enumerate(candidates)]
        idle = [_idle(len(candidates) + i, prompt_tokens, candidate) for i, candidate in enumerate(candidates)]
        return loaded + idle

    def _loaded(self, input_id: int, prompt_tokens: int, candidate: Candidate) -> Input:
        server = self.of(candidate.address)
        return Input(
            input_id=input_id,
            pod_type=candidate.pod_type,
            input_token_length=prompt_tokens,
            prefix_cache_score=candidate.prefix_cache_score,
            num_request_waiting=server.queue(),
            num_request_running=server.under_way,
            kv_cache_usage=server.kv_cache_usage,
            inflight_tokens=server.tokens,
            server_ip=candidate.address,
        )

    def rank(self, candidates: Sequence[Candidate], predictions: Mapping[int, Prediction]) -> List[int]:
        """The positions of the candidates, best first. A candidate without a prediction comes last.

        A candidate that was not chosen for long comes first, so that it is measured again. Otherwise, of those within 5 % of the
        least score, the one with the fewest requests since its last metrics comes first.
        """
        count = len(candidates)
        scores = [
            self._score(predictions.get(i), predictions.get(i + count), self.of(candidate.address).under_way)
            for i, candidate in enumerate(candidates)
        ]
        least = min(scores)
        equal = [i for i in range(count) if scores[i] <= least * TIE]
        best = min(equal, key=lambda i: self.of(candidates[i].address).sent_since_metrics)
        first = self._neglected(candidates)
        return _put_first(best if first is None else first, sorted(range(count), key=scores.__getitem__))

    def _score(self, loaded: Optional[Prediction], idle: Optional[Prediction], under_way: int) -> float:
        if loaded is None or idle is None:
            return float("inf")
        own = TTFT_WEIGHT * loaded.ttft_millis + self.mean_output_tokens * loaded.tpot_millis
        slowdown = max(1.0, loaded.tpot_millis / idle.tpot_millis) if idle.tpot_millis > 0 else 1.0
        score = own + under_way * idle.ttft_millis * slowdown
        return float("inf") if math.isnan(score) else score

    def _neglected(self, candidates: Sequence[Candidate]) -> Optional[int]:
        for i, candidate in enumerate(candidates):
            if self.sent - self.of(candidate.address).last_sent > EXPLORE_AFTER * len(candidates):
                return i
        return None

    def rank_by_load(self, candidates: Sequence[Candidate]) -> List[int]:
        """The positions of the candidates without predictions: the fewest requests, waiting and under way, first."""

        def requests(i: int) -> int:
            server = self.of(candidates[i].address)
            return (server.waiting or 0) + server.under_way

        return sorted(range(len(candidates)), key=requests)

    def dispatched(self, address: str, prompt_tokens: int) -> Callable[[int], None]:
        """Counts a request as under way; the function that it returns counts its end."""
        self.sent += 1
        server = self.of(address)
        server.last_sent = self.sent
        server.sent_since_metrics += 1
        server.under_way += 1
        server.tokens += prompt_tokens

        def ended(output_tokens: int) -> None:
            server.under_way -= 1
            server.tokens -= prompt_tokens
            if output_tokens > 0:
                self.mean_output_tokens += (output_tokens - self.mean_output_tokens) / 100

        return ended


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
