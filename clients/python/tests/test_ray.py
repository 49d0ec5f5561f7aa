"""Against a stand-in of Ray Serve: tests/standins/ray."""

import asyncio
import pathlib
import sys
import types
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent / "standins"))
from ray.serve.request_router import (  # noqa: E402
    FIFOMixin,
    PendingRequest,
    ReplicaID,
    ReplicaResult,
    RequestMetadata,
    RunningReplica,
)

from trivet import Client, Reporter, ray_serve  # noqa: E402
from trivet.ray_serve import TrivetRequestRouter, count_tokens, time_stream  # noqa: E402

from .service import URL, Silent, needs_service  # noqa: E402


def create_router(test, **options):
    router = TrivetRequestRouter()
    router.initialize_state(model="ray", **options)
    test.addCleanup(router._trivet.close)
    return router


def request(request_id):
    chat = types.SimpleNamespace(messages=[{"role": "user", "content": "x" * 4000}])
    return PendingRequest([chat], {}, RequestMetadata(request_id))


def replicas(busy=None):
    stats = {"num_requests_waiting": 40, "kv_cache_usage": 0.9}
    return [RunningReplica(ReplicaID(name), stats if name == busy else {}) for name in ("one", "two")]


def names(ranks):
    return [replica.replica_id.unique_id for (replica,) in ranks]


class RouterTest(unittest.TestCase):
    def test_ranks_every_replica_when_nothing_answers(self):
        with Silent() as url:
            router = create_router(self, url=url, deadline=0.02)
            ranks = asyncio.run(router.choose_replicas(replicas(busy="one"), request("r1")))
        self.assertEqual(names(ranks), ["two", "one"])

    def test_a_replica_whose_stats_cannot_be_true_is_ranked(self):
        router = create_router(self, url="http://127.0.0.1:1")
        candidates = replicas(busy="one")
        for value in (None, float("nan"), "many"):
            candidates[1].routing_stats = {"num_requests_waiting": value}
            with self.subTest(value):
                self.assertEqual(names(asyncio.run(router.choose_replicas(candidates, request("r1")))), ["two", "one"])

    def test_forgets_the_stats_of_replicas_that_are_gone(self):
        router = create_router(self, url="http://127.0.0.1:1")
        for i in range(ray_serve._MAX_REPLICAS + 5):
            router._take_stats(f"replica-{i}", {"num_requests_waiting": 1})
        self.assertEqual(len(router._seen_stats), ray_serve._MAX_REPLICAS)

    def test_takes_no_candidates_and_no_request(self):
        router = create_router(self)
        self.assertEqual(asyncio.run(router.choose_replicas([], request("r1"))), [])
        candidates = replicas()
        self.assertEqual(asyncio.run(router.choose_replicas(candidates)), [candidates])

    def test_lets_others_run_when_it_is_asked_without_a_request(self):
        async def ask():
            other = asyncio.create_task(asyncio.sleep(0))
            await create_router(self).choose_replicas(replicas())
            return other.done()

        self.assertTrue(asyncio.run(ask()))

    def test_requests_whose_task_was_stopped_are_taken_by_the_next_task(self):
        router = create_router(self)
        self.assertIsInstance(router, FIFOMixin)
        self.assertIsNone(router._get_pending_request_matching_metadata(RequestMetadata("r1")))

    def test_lets_ray_wait_while_every_replica_is_full(self):
        with Silent() as url:
            pending = request("r1")
            asyncio.run(create_router(self, url=url, deadline=0.02).choose_replicas(replicas(), pending))
        self.assertTrue(pending.routing_context.should_backoff)

    def test_sends_a_token_in_clear_only_where_it_is_allowed(self):
        options = {"url": "http://trivet.example:8080", "token": "secret"}
        with self.assertRaisesRegex(ValueError, "allows_token_in_clear"):
            create_router(self, **options)
        create_router(self, **options, allows_token_in_clear=True)

    def test_needs_the_name_of_the_model(self):
        with self.assertRaisesRegex(ValueError, "must name the model"):
            TrivetRequestRouter().initialize_state()

    def test_a_request_counts_until_its_result_is_done(self):
        with Silent() as url:
            router = create_router(self, url=url, deadline=0.02)
            pending, result = request("r1"), ReplicaResult()
            asyncio.run(router.choose_replicas(replicas(), pending))
            router.on_request_routed(pending, ReplicaID("one"), result)
            self.assertEqual(names(asyncio.run(router.choose_replicas(replicas(), request("r2")))), ["two", "one"])
            result.finish()
            self.assertEqual(names(asyncio.run(router.choose_replicas(replicas(), request("r3")))), ["one", "two"])

    def test_a_replica_that_was_not_asked_about_is_not_reported(self):
        with Silent() as url:
            router = create_router(self, url=url, deadline=0.02)
            pending = request("r1")
            asyncio.run(router.choose_replicas(replicas(), pending))
            router.on_request_routed(pending, ReplicaID("three"), ReplicaResult())
            router.on_request_routed(request("r9"), ReplicaID("one"), ReplicaResult())
            self.assertEqual(len(router._trivet.reporter._events), 0)

    def test_counts_the_tokens_of_a_prompt_and_of_messages(self):
        self.assertEqual(count_tokens(request("r1")), 1000)
        completion = PendingRequest([types.SimpleNamespace(prompt="x" * 400)], {}, RequestMetadata("r2"))
        self.assertEqual(count_tokens(completion), 100)
        self.assertEqual(count_tokens(PendingRequest([object()], {}, RequestMetadata("r3"))), 0)


@needs_service
class ServiceTest(unittest.TestCase):
    def test_router_and_replica_report_one_request_from_two_places(self):
        router = create_router(self, url=URL, deadline=30)
        reporter = Reporter(Client(URL), interval=0.01)
        for _ in range(20):
            asyncio.run(self.serve(router, reporter, uuid.uuid4().hex))
        of_router, of_replica = router._trivet.close(), reporter.close()
        self.assertEqual((of_router.accepted, of_router.refused), (20, 0))
        self.assertEqual((of_replica.accepted, of_replica.refused), (40, 0))

    async def serve(self, router, reporter, request_id):
        pending, result = request(request_id), ReplicaResult()
        ranks = await router.choose_replicas(replicas(busy="one"), pending)
        self.assertEqual(names(ranks), ["two", "one"])
        router.on_request_routed(pending, ranks[0][0].replica_id, result)
        chunks = [chunk async for chunk in time_stream(generate(), request_id=request_id, reporter=reporter, count=len)]
        self.assertEqual(chunks, ["", "ab", "c"])
        result.finish()


async def generate():
    for chunk in ("", "ab", "c"):
        await asyncio.sleep(0)
        yield chunk
