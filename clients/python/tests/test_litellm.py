"""Against a stand-in of LiteLLM: tests/standins/litellm."""

import asyncio
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "standins"))
import litellm  # noqa: E402
from litellm.router import Router as LiteLLMRouter  # noqa: E402

from trivet import Client, Reporter, Router, TrivetError  # noqa: E402
from trivet.litellm_strategy import TrivetStrategy, estimate_tokens  # noqa: E402

from .service import URL, needs_service  # noqa: E402
from .test_router import Recorder  # noqa: E402

MESSAGES = [{"role": "user", "content": "x" * 4000}]


def deployment(number):
    parameters = {"model": "hosted_vllm/qwen3-32b", "api_base": f"http://10.0.0.{number}:8000/v1"}
    return {"model_name": "qwen3", "litellm_params": parameters, "model_info": {"id": f"server-{number}"}}


def install(client, test, *, also=()):
    litellm.callbacks.clear()
    router = LiteLLMRouter([deployment(1), deployment(2), *also])
    trivet = Router(client, "qwen3-32b", reporter=Reporter(client, interval=0.01))
    test.addCleanup(trivet.close)
    TrivetStrategy(router, trivet).install()
    return router, trivet


def fast(number):
    return Recorder({f"http://10.0.0.{one}:8000/v1": 10.0 if one == number else 50.0 for one in (1, 2)})


class StrategyTest(unittest.TestCase):
    def complete(self, router, group="qwen3", **options):
        return asyncio.run(router.acompletion(group, MESSAGES, **options))["model_info"]["id"]

    def test_returns_the_deployment_of_the_best_server_and_reports_its_times(self):
        client = fast(2)
        router, trivet = install(client, self)
        self.assertEqual(self.complete(router), "server-2")
        trivet.close()
        dispatched, first, finished = client.events
        self.assertEqual(dispatched["dispatched"]["input"]["input_token_length"], 1000)
        self.assertGreaterEqual(first["firstToken"]["ttftMillis"], 50.0)
        self.assertAlmostEqual(finished["finished"]["tpotMillis"], 10.0, places=2)
        self.assertEqual(finished["finished"]["outputTokens"], 11)

    def test_a_deployment_that_cools_down_is_not_chosen(self):
        router, _ = install(fast(2), self)
        router.cooling_down.add("server-2")
        self.assertEqual(self.complete(router), "server-1")

    def test_deployments_of_one_server_take_turns(self):
        second = {**deployment(2), "model_info": {"id": "server-2-other-key"}}
        router, _ = install(fast(2), self, also=[second])
        chosen = [self.complete(router) for _ in range(20)]
        self.assertEqual((chosen.count("server-2"), chosen.count("server-2-other-key")), (10, 10))

    def test_deployments_of_one_server_take_turns_in_each_group(self):
        others = [
            {**deployment(2), "model_name": group, "model_info": {"id": f"{group}-{number}"}}
            for group in ("chat", "code")
            for number in (1, 2)
        ]
        router, _ = install(fast(2), self, also=others)
        chosen = [self.complete(router, group) for _ in range(10) for group in ("chat", "code")]
        self.assertEqual([chosen.count(other["model_info"]["id"]) for other in others], [5, 5, 5, 5])

    def test_a_request_without_a_stream_and_one_that_failed_end_without_a_report(self):
        client = fast(2)
        router, trivet = install(client, self)
        self.complete(router, stream=False)
        self.complete(router, fails=True)
        self.complete(router)
        self.assertEqual(client.asked[-1][1].num_request_running, 0)
        trivet.close()
        self.assertEqual(len(client.events), 3)

    def test_a_retry_ends_the_choice_before_it(self):
        client = fast(2)
        router, _ = install(client, self)
        kwargs = {"metadata": {}}
        for _ in range(3):
            asyncio.run(router.async_get_available_deployment("qwen3", messages=MESSAGES, request_kwargs=kwargs))
        self.assertEqual(client.asked[-1][1].num_request_running, 0)

    def test_the_routers_own_strategy_chooses_when_there_is_no_way_to_predict(self):
        router, _ = install(fast(2), self)
        router.cooling_down.update(("server-1", "server-2"))
        self.assertEqual(self.complete(router), "server-1")
        self.assertEqual(router.get_available_deployment("qwen3")["model_info"]["id"], "server-1")
        chosen = asyncio.run(
            router.async_get_available_deployment("hosted_vllm/qwen3-32b", specific_deployment=True, request_kwargs={})
        )
        self.assertEqual((chosen["model_info"]["id"], router.first_chosen), ("server-1", 3))

    def test_requests_are_spread_when_nothing_answers(self):
        client = Recorder(error=TrivetError("unavailable", "away"))
        router, _ = install(client, self)
        chosen = [
            asyncio.run(router.async_get_available_deployment("qwen3", messages=MESSAGES, request_kwargs={}))
            for _ in range(4)
        ]
        self.assertEqual({one["model_info"]["id"] for one in chosen}, {"server-1", "server-2"})

    def test_requests_without_metadata_do_not_stay_under_way(self):
        client = fast(2)
        router, _ = install(client, self)
        for kwargs in (None, {"metadata": None}):
            asyncio.run(router.async_get_available_deployment("qwen3", messages=MESSAGES, request_kwargs=kwargs))
        self.assertEqual(client.asked[-1][1].num_request_running, 0)

    def test_calls_at_once_with_one_dictionary_of_metadata_each_end_once(self):
        for name in ("metadata", "litellm_metadata"):
            with self.subTest(name):
                client, constant = fast(2), {"team": "a"}
                router, trivet = install(client, self)

                async def complete_at_once():
                    router.answered.clear()
                    calls = [asyncio.ensure_future(router.acompletion("qwen3", MESSAGES, **{name: constant})) for _ in range(2)]
                    while router.waiting < 2:
                        await asyncio.sleep(0)
                    router.answered.set()
                    await asyncio.gather(*calls)

                asyncio.run(complete_at_once())
                self.assertNotIn("trivet_request_id", constant)
                self.complete(router)
                self.assertEqual(client.asked[-1][1].num_request_running, 0)
                trivet.close()
                self.assertEqual(len({one["finished"]["requestId"] for one in client.events if "finished" in one}), 3)

    @needs_service
    def test_the_service_predicts_and_takes_the_reports(self):
        router, trivet = install(Client(URL, deadline=30), self)
        for _ in range(20):
            self.complete(router)
        reported = trivet.close()
        self.assertEqual((reported.accepted, reported.refused, trivet.reporter.dropped), (60, 0, 0))


class EstimateTest(unittest.TestCase):
    def test_counts_texts_messages_and_parts(self):
        parts = [{"type": "text", "text": "x" * 40}, {"type": "image_url", "image_url": {}}]
        for prompt, tokens in (("x" * 40, 10), (MESSAGES, 1000), ([{"content": parts}], 10), (None, 0)):
            with self.subTest(prompt):
                self.assertEqual(estimate_tokens(prompt), tokens)
