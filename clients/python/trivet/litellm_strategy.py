"""Routes calls of LiteLLM as a custom strategy: `TrivetStrategy(router, Router(Client(), "qwen3-32b")).install()`.

It is built on the interfaces that LiteLLM documents: `CustomRoutingStrategyBase` with
`Router.set_custom_routing_strategy()`, and `CustomLogger`, which learns when a request ends.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Callable, Dict, List, Optional, Union

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.router import CustomRoutingStrategyBase

from .load import LONGEST_REQUEST
from .router import Choice, Router

_MARK = "trivet_request_id"
_MAX_UNDER_WAY = 100_000
#: The keys under which LiteLLM keeps the metadata of a request: newer endpoints such as `aresponses` use another key.
_METADATA_NAMES = ("litellm_metadata", "metadata")


class TrivetStrategy(CustomRoutingStrategyBase):  # type: ignore[misc]
    """Chooses a healthy deployment of the requested model by predicted latency.

    `server_of` returns the server of a deployment, by default its `api_base`; deployments of one server share its load, and take turns.
    `count_tokens` returns the length of a prompt, by default a quarter of its characters.
    If anything fails, the strategy with which the LiteLLM router was created chooses.
    """

    def __init__(
        self,
        router: Any,
        trivet: Router,
        *,
        server_of: Optional[Callable[[Dict[str, Any]], str]] = None,
        count_tokens: Optional[Callable[[Any], int]] = None,
    ) -> None:
        self.logger = TrivetLogger()
        self._router = router
        self._trivet = trivet
        self._server_of = server_of if server_of is not None else _api_base
        self._count_tokens = count_tokens if count_tokens is not None else estimate_tokens
        # How many requests each server got.
        self._turns: Dict[str, int] = {}
        # The methods that install() replaces.
        self._choose_otherwise = router.get_available_deployment
        self._choose_otherwise_async = router.async_get_available_deployment

    def install(self) -> None:
        """Makes the LiteLLM router choose by predictions, and report the times that it observes."""
        self._router.set_custom_routing_strategy(self)
        litellm.callbacks.append(self.logger)

    async def async_get_available_deployment(
        self,
        model: str,
        messages: Optional[List[Dict[str, str]]] = None,
        input: Optional[Union[str, List[Any]]] = None,  # noqa: A002 (the name is LiteLLM's)
        specific_deployment: Optional[bool] = False,
        request_kwargs: Optional[Dict[str, Any]] = None,
        **others: Any,
    ) -> Any:
        """Returns an element of the router's model_list."""
        request: Dict[str, Any] = {
            "model": model,
            "messages": messages,
            "input": input,
            "specific_deployment": specific_deployment,
            "request_kwargs": request_kwargs,
            **others,
        }
        self.logger.forget(request_kwargs)
        try:
            healthy = await self._router.async_get_healthy_deployments(parent_otel_span=None, **request)
            if isinstance(healthy, list) and healthy:
                return await self._choose(healthy, request)
        except Exception:  # noqa: BLE001 (a request must not fail because of a prediction)
            litellm.verbose_logger.exception("trivet: no prediction")
        return await self._choose_otherwise_async(**request)

    def get_available_deployment(self, model: str, *args: Any, **kwargs: Any) -> Any:
        """For blocking calls, the router's own strategy chooses, without predictions."""
        return self._choose_otherwise(model, *args, **kwargs)

    async def _choose(self, healthy: List[Dict[str, Any]], request: Dict[str, Any]) -> Dict[str, Any]:
        by_server: Dict[str, List[Dict[str, Any]]] = {}
        for deployment in healthy:
            by_server.setdefault(self._server_of(deployment), []).append(deployment)
        prompt = request["messages"] if request["messages"] is not None else request["input"]
        choice = await self._trivet.choose_async(self._count_tokens(prompt), list(by_server))
        self.logger.follow(choice, request["request_kwargs"])
        return self._take_turn(choice.address, by_server[choice.address])

    def _take_turn(self, server: str, deployments: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Spreads requests over the deployments of one server, each of which may have its own limits."""
        turn = self._turns.get(server, 0)
        self._turns[server] = turn + 1
        return deployments[turn % len(deployments)]


class TrivetLogger(CustomLogger):  # type: ignore[misc]
    """Reports the time to the first token and per output token of requests that stream.

    A request that does not stream has no time to the first token, so it ends without a report.
    """

    def __init__(self) -> None:
        super().__init__()
        self._under_way: OrderedDict[str, Choice] = OrderedDict()

    def forget(self, request_kwargs: Optional[Dict[str, Any]]) -> None:
        """Ends the choice of an earlier attempt at the same request."""
        self._finish(_find_mark(request_kwargs))

    def follow(self, choice: Choice, request_kwargs: Optional[Dict[str, Any]]) -> None:
        """Marks a request, so that its end can be matched. A request without kwargs cannot be marked."""
        if request_kwargs is None:
            return choice.failed()
        name = next((one for one in _METADATA_NAMES if one in request_kwargs), "metadata")
        # A new dictionary, because the present one belongs to the caller, who may use it for other requests too.
        metadata = request_kwargs.get(name)
        request_kwargs[name] = {**(metadata if isinstance(metadata, dict) else {}), _MARK: choice.request_id}
        self._under_way[choice.request_id] = choice
        self._forget_lost()
        return None

    def _forget_lost(self) -> None:
        """Ends choices whose end LiteLLM did not report."""
        oldest_start = time.time() - LONGEST_REQUEST
        while self._under_way:
            oldest = next(iter(self._under_way.values()))
            if len(self._under_way) <= _MAX_UNDER_WAY and oldest.started_at >= oldest_start:
                return
            self._finish(oldest.request_id)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """LiteLLM calls it once, at the end of a request that was answered."""
        choice = self._under_way.pop(_find_mark(kwargs.get("litellm_params"), kwargs), None)
        if choice is None:
            return
        payload = kwargs.get("standard_logging_object") or {}
        first, end = payload.get("completionStartTime"), payload.get("endTime")
        tokens = payload.get("completion_tokens") or 0
        if not payload.get("stream") or payload.get("cache_hit") or not first or not end or tokens < 1:
            return choice.failed()
        # LiteLLM counts from the arrival at its router, but the time of the server begins with the choice.
        choice.first_token(max(first - choice.started_at, 0.0))
        return choice.finished(tokens, max(end - first, 0.0))

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """LiteLLM calls it when an attempt failed."""
        self._finish(_find_mark(kwargs.get("litellm_params"), kwargs))

    def _finish(self, request_id: str) -> None:
        choice = self._under_way.pop(request_id, None)
        if choice is not None:
            choice.failed()


def estimate_tokens(prompt: Any) -> int:
    """Returns a quarter of the characters of messages or texts: enough to distinguish long prompts from short ones."""
    if isinstance(prompt, str):
        return len(prompt) // 4
    if isinstance(prompt, dict):
        return estimate_tokens(prompt.get("content") or prompt.get("text") or "")
    if isinstance(prompt, list):
        return sum(estimate_tokens(part) for part in prompt)
    return 0


def _api_base(deployment: Dict[str, Any]) -> str:
    parameters = deployment["litellm_params"]
    return str(parameters.get("api_base") or deployment.get("model_info", {}).get("id") or parameters["model"])


def _find_mark(*holders: Optional[Dict[str, Any]]) -> str:
    """Returns the first mark found in the metadata of these holders; empty without one."""
    for holder in holders:
        for name in _METADATA_NAMES:
            metadata = (holder or {}).get(name)
            if isinstance(metadata, dict) and _MARK in metadata:
                return str(metadata[_MARK])
    return ""
