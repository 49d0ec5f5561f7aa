from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List


@dataclass(frozen=True)
class ReplicaID:
    unique_id: str


@dataclass
class RunningReplica:
    replica_id: ReplicaID
    routing_stats: Dict[str, Any] = field(default_factory=dict)


@dataclass
class RequestMetadata:
    request_id: str


@dataclass
class RequestRoutingContext:
    should_backoff: bool = False


@dataclass
class PendingRequest:
    args: List[Any]
    kwargs: Dict[Any, Any]
    metadata: RequestMetadata
    routing_context: RequestRoutingContext = field(default_factory=RequestRoutingContext)


class ReplicaResult:
    def __init__(self):
        self.callbacks: List[Callable] = []

    def add_done_callback(self, callback):
        self.callbacks.append(callback)

    def finish(self):
        for callback in self.callbacks:
            callback(self)


class FIFOMixin:
    pass


class RequestRouter(ABC):
    def __init__(self, deployment_id=None, handle_source=None, **kwargs):
        pass

    def initialize_state(self, **kwargs):
        pass

    @abstractmethod
    async def choose_replicas(self, candidate_replicas, pending_request=None):
        pass

    def on_request_routed(self, pending_request, replica_id, result):
        pass
