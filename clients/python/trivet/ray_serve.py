"""Routes the requests of Ray Serve LLM by predicted latency, and measures the times of its replicas.

The router asks for predictions, ranks the replicas and reports each dispatch. A replica reports when its first token and
its end came, under the same request id (`time_stream`): the service joins the events of several processes.

Ray Serve marks this interface as alpha: `RequestRouter.choose_replicas()`, `initialize_state()`, `on_request_routed()`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, TypeVar

from ray.serve.request_router import (
    FIFOMixin,
    PendingRequest,
    ReplicaID,
    ReplicaResult,
    RequestRouter,
    RunningReplica,
)

from . import messages
from .client import Client
from .reporter import Reporter
from .router import Ranking, Router

Chunk = TypeVar("Chunk")
_MAX_PENDING = 10_000
_MAX_REPLICAS = 10_000
# Ray calls the router without a request, again and again, while other requests wait for predictions. Without a pause in the
# event loop, they would wait forever.
_PAUSE_SECONDS = 0.005


class TrivetRequestRouter(FIFOMixin, RequestRouter):  # type: ignore[misc]
    """Set it in `RequestRouterConfig(request_router_class="trivet.ray_serve:TrivetRequestRouter", request_router_kwargs=...)`.

    Ray can stop the task that asks for a request while it waits for a prediction. With FIFOMixin, the next task that finds
    a replica serves that request. Without FIFOMixin, the request would wait forever.
    """

    def initialize_state(
        self,
        model: str = "",
        url: str = "http://127.0.0.1:8080",
        token: Optional[str] = None,
        deadline: float = 0.05,
        waiting_stat: str = "num_requests_waiting",
        kv_cache_stat: str = "kv_cache_usage",
        allows_token_in_clear: bool = False,
        **_others: Any,
    ) -> None:
        """Takes `request_router_kwargs`. The two stats are keys in what the replica's record_routing_stats() returns."""
        if not model:
            raise ValueError("request_router_kwargs must name the model, for example {'model': 'qwen3-32b'}")
        client = Client(url, token=token, deadline=deadline, allows_token_in_clear=allows_token_in_clear)
        # Ray does not show when stats were read, and removes dead replicas by itself, so stats count at any age.
        self._trivet = Router(client, model, max_metrics_age=math.inf)
        self._stats = (waiting_stat, kv_cache_stat)
        self._seen_stats: OrderedDict[str, Any] = OrderedDict()
        self._rankings: OrderedDict[str, Ranking] = OrderedDict()

    async def choose_replicas(
        self,
        candidate_replicas: List[RunningReplica],
        pending_request: Optional[PendingRequest] = None,
    ) -> List[List[RunningReplica]]:
        """Returns each replica as a rank, best first: Ray takes the first with room."""
        if not candidate_replicas:
            return []
        if pending_request is None:
            await asyncio.sleep(_PAUSE_SECONDS)
            return [candidate_replicas]
        # Without this pause, Ray calls again at once while every replica is full.
        pending_request.routing_context.should_backoff = True
        by_name = {_name(replica.replica_id): replica for replica in candidate_replicas}
        for name, replica in by_name.items():
            self._take_stats(name, replica.routing_stats)
        ranking = await self._trivet.rank_async(count_tokens(pending_request), list(by_name))
        self._rankings[pending_request.metadata.request_id] = ranking
        while len(self._rankings) > _MAX_PENDING:
            self._rankings.popitem(last=False)
        return [[by_name[candidate.address]] for candidate in ranking.candidates]

    def on_request_routed(self, pending_request: PendingRequest, replica_id: ReplicaID, result: ReplicaResult) -> None:
        """Ray calls it once a replica has taken the request."""
        request_id = pending_request.metadata.request_id
        ranking = self._rankings.pop(request_id, None)
        name = _name(replica_id)
        if ranking is None or all(candidate.address != name for candidate in ranking.candidates):
            return
        choice = ranking.dispatch(name, request_id)
        choice.dispatched()
        result.add_done_callback(lambda _result: choice.failed())

    def _get_pending_request_matching_metadata(self, request_metadata: Any = None) -> Optional[PendingRequest]:
        """For FIFOMixin: returns the ranked request if it still waits; without this method, Ray serves the oldest."""
        find = getattr(self, "_get_pending_request_matching_internal_request_id", None)
        return None if find is None else find(request_metadata)

    def _take_stats(self, name: str, stats: Dict[str, Any]) -> None:
        seen = self._seen_stats.pop(name, None)
        self._seen_stats[name] = dict(stats)
        if len(self._seen_stats) > _MAX_REPLICAS:
            self._seen_stats.popitem(last=False)
        if not stats or seen == stats:
            return
        waiting, kv_cache = self._stats
        try:
            self._trivet.set_metrics(name, waiting=stats.get(waiting, 0), kv_cache_usage=stats.get(kv_cache, 0))
        except (TypeError, ValueError):
            # The stats of the replica are impossible, such as None: a request must not fail because of that.
            return


def count_tokens(pending_request: PendingRequest) -> int:
    """Returns a quarter of the characters of the request's messages or prompt: enough to distinguish long prompts from short ones."""
    for argument in pending_request.args:
        content = getattr(argument, "messages", None) or getattr(argument, "prompt", None)
        if content:
            return _count_characters(content) // 4
    return 0


async def time_stream(
    stream: AsyncIterator[Chunk],
    *,
    request_id: str,
    reporter: Reporter,
    count: Callable[[Chunk], int] = lambda _chunk: 1,
) -> AsyncIterator[Chunk]:
    """In a replica: passes a stream through, and reports its first token and its end.

    `count` returns the tokens in a chunk. With batched streaming, a chunk has several tokens.
    """
    started_at = time.monotonic()
    first_at: Optional[float] = None
    tokens = 0
    async for chunk in stream:
        counted = count(chunk)
        if first_at is None and counted > 0:
            first_at = time.monotonic()
            reporter.send([messages.first_token(request_id, first_at - started_at)])
        tokens += counted
        yield chunk
    if first_at is not None:
        reporter.send([messages.finished(request_id, time.monotonic() - first_at, tokens)])


def _name(replica_id: Any) -> str:
    return str(getattr(replica_id, "unique_id", replica_id))


def _count_characters(content: Any) -> int:
    if isinstance(content, str):
        return len(content)
    if isinstance(content, list):
        return sum(_count_characters(part) for part in content)
    if isinstance(content, dict):
        return _count_characters(content.get("content") or content.get("text") or "")
    return _count_characters(getattr(content, "content", ""))
