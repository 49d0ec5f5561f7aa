"""What LiteLLM's router does with a custom strategy and with the callbacks, without a call to a model."""

import asyncio
import time

import litellm


class Router:
    def __init__(self, model_list):
        self.model_list = model_list
        self.cooling_down = set()
        self.first_chosen = 0
        # Requests wait here for their answer.
        self.waiting = 0
        self.answered = asyncio.Event()
        self.answered.set()

    def set_custom_routing_strategy(self, strategy):
        self.get_available_deployment = strategy.get_available_deployment
        self.async_get_available_deployment = strategy.async_get_available_deployment

    async def async_get_healthy_deployments(
        self, model, request_kwargs, messages=None, input=None, specific_deployment=False, parent_otel_span=None
    ):
        if specific_deployment:
            return next(one for one in self.model_list if one["litellm_params"]["model"] == model)
        named = [one for one in self.model_list if one["model_name"] == model]
        return [one for one in named if one["model_info"]["id"] not in self.cooling_down]

    async def async_get_available_deployment(
        self, model, request_kwargs, messages=None, input=None, specific_deployment=False
    ):
        self.first_chosen += 1
        return self.model_list[0]

    def get_available_deployment(self, model, messages=None, input=None, specific_deployment=False, request_kwargs=None):
        self.first_chosen += 1
        return self.model_list[0]

    async def acompletion(self, model, messages, *, stream=True, ttft=0.05, tokens=11, fails=False, **kwargs):
        """Chooses, and calls the callbacks as at the end of a request that took `ttft`, and 10 ms a token."""
        name = "litellm_metadata" if "litellm_metadata" in kwargs else "metadata"
        kwargs.setdefault(name, {})["model_group"] = model
        deployment = await self.async_get_available_deployment(
            model=model, messages=messages, specific_deployment=None, request_kwargs=kwargs
        )
        self.waiting += 1
        await self.answered.wait()
        started = time.time()
        first = started + ttft
        end = first + 0.01 * (tokens - 1)
        logged = {
            "litellm_params": {name: kwargs[name]},
            "standard_logging_object": {
                "stream": stream,
                "startTime": started,
                "completionStartTime": first if stream else end,
                "endTime": end,
                "prompt_tokens": 500,
                "completion_tokens": tokens,
                "cache_hit": None,
            },
        }
        for callback in litellm.callbacks:
            if fails:
                await callback.async_log_failure_event(logged, None, started, end)
            else:
                await callback.async_log_success_event(logged, object(), started, end)
        return deployment
