import asyncio
import threading
import unittest
from fractions import Fraction

from trivet import Answer, Candidate, Client, Prediction, Reported, Reporter, Router, TrivetError, messages
from trivet.load import EXPLORE_AFTER, FORGET_AFTER, LONGEST_REQUEST, Load

from .service import URL, Answers, Silent, needs_service

POOL = ["10.0.0.1", "10.0.0.2"]


class Recorder:
    """A client that gives a fixed answer, and keeps what it is asked and what is reported."""

    deadline = 5.0

    def __init__(self, tpot_by_server=None, error=None):
        self.tpot_by_server, self.error = tpot_by_server or {}, error
        self.asked, self.events = [], []

    def predict(self, model, inputs):
        self.asked.append(inputs)
        if self.error is not None:
            raise self.error
        outputs = [
            Prediction(one.input_id, one.server_ip, 100.0, self.tpot_by_server[one.server_ip])
            for one in inputs
            if one.server_ip in self.tpot_by_server
        ]
        return Answer(outputs, "qwen3-32b@1", len(inputs) - len(outputs))

    def report(self, events):
        self.events.extend(events)
        return Reported(len(events), 0)


class Stuck:
    """A client that is held up where its deadline does not reach, such as in the resolution of a name."""

    deadline = 0.01

    def __init__(self):
        self.asked, self.end = 0, threading.Event()

    def predict(self, _model, _inputs):
        self.asked += 1
        self.end.wait(60)
        raise TrivetError("unavailable", "away")


def create_router(client, test):
    router = Router(client, "qwen3-32b", reporter=Reporter(client, interval=0.01))
    test.addCleanup(router.close)
    return router


class RouterTest(unittest.TestCase):
    def test_chooses_the_least_score_and_reports_what_it_asked(self):
        client = Recorder({"10.0.0.1": 30.0, "10.0.0.2": 10.0})
        router = create_router(client, self)
        router.set_metrics("10.0.0.2", waiting=3, kv_cache_usage=0.5)
        choice = router.choose(1200, POOL)
        self.assertEqual((choice.address, choice.model_version, choice.error), ("10.0.0.2", "qwen3-32b@1", None))
        choice.first_token(0.25)
        choice.finished(output_tokens=101, elapsed=2.0)
        reported = router.close()
        self.assertEqual((reported.accepted, router.reporter.dropped), (3, 0))
        dispatched, first, finished = client.events
        self.assertEqual(dispatched["dispatched"]["targetModel"], "qwen3-32b")
        self.assertEqual(
            dispatched["dispatched"]["input"],
            {"input_id": 1, "input_token_length": 1200, "num_request_waiting": 3, "kv_cache_usage": 0.5, "server_ip": "10.0.0.2"},
        )
        self.assertEqual(first["firstToken"]["ttftMillis"], 250.0)
        self.assertEqual((finished["finished"]["tpotMillis"], finished["finished"]["outputTokens"]), (20.0, 101))

    def test_reports_a_dispatch_once(self):
        client = Recorder()
        router = create_router(client, self)
        choice = router.choose(1200, POOL)
        choice.dispatched()
        choice.dispatched()
        choice.first_token(0.25)
        router.close()
        self.assertEqual([kind for event in client.events for kind in event], ["dispatched", "firstToken"])

    def test_an_answer_without_a_first_token_ends_without_a_time(self):
        client = Recorder({"10.0.0.1": 10.0})
        router = create_router(client, self)
        choice = router.choose(1000, POOL[:1])
        choice.dispatched()
        choice.finished(10)
        router.choose(1000, POOL[:1])
        self.assertEqual(client.asked[1][0].num_request_running, 0)
        choice = router.choose(1000, POOL[:1])
        choice.finished(11, elapsed=0.5)
        router.close()
        self.assertEqual([kind for event in client.events for kind in event], ["dispatched", "finished"])
        self.assertEqual(client.events[1]["finished"]["tpotMillis"], 50.0)

    def test_asks_about_each_server_loaded_and_idle_with_what_it_has_sent_itself(self):
        client = Recorder({"10.0.0.1": 10.0})
        router = create_router(client, self)
        router.choose(1000, POOL[:1])
        router.choose(500, POOL[:1])
        loaded, idle = client.asked[1]
        self.assertEqual((loaded.num_request_running, loaded.inflight_tokens, loaded.num_request_waiting), (1, 1000, 0))
        self.assertEqual((idle.num_request_running, idle.inflight_tokens, idle.input_token_length), (0, 0, 500))

    def test_a_request_that_failed_is_not_reported_and_not_counted(self):
        client = Recorder({"10.0.0.1": 10.0})
        router = create_router(client, self)
        choice = router.choose(1000, POOL[:1])
        choice.failed()
        choice.finished(10)
        router.choose(1000, POOL[:1])
        self.assertEqual(client.asked[1][0].num_request_running, 0)
        router.close()
        self.assertEqual(client.events, [])

    def test_a_candidate_without_a_prediction_comes_last(self):
        router = create_router(Recorder({"10.0.0.2": 10.0}), self)
        self.assertEqual([one.address for one in router.rank(1000, POOL).candidates], ["10.0.0.2", "10.0.0.1"])

    def test_falls_back_to_the_fewest_requests(self):
        for error in (TrivetError("unavailable", "away"), TrivetError("unauthenticated", "a token is needed")):
            with self.subTest(error.code):
                router = create_router(Recorder(error=error), self)
                router.set_metrics("10.0.0.1", waiting=2)
                choice = router.choose(1000, POOL)
                self.assertEqual((choice.address, choice.model_version, choice.error), ("10.0.0.2", "", error))

    def test_stops_asking_for_a_while_after_failures(self):
        client = Recorder(error=TrivetError("unavailable", "away"))
        router = create_router(client, self)
        for _ in range(10):
            router.choose(1000, POOL)
        self.assertEqual(len(client.asked), 3)

    def test_the_event_loop_gets_a_choice_when_nothing_answers(self):
        with Silent() as url:
            router = create_router(Client(url, deadline=0.02), self)
            choice = asyncio.run(router.choose_async(1000, [Candidate("10.0.0.1")]))
        self.assertIn(choice.error.code, ("unavailable", "deadline_exceeded"))

    def test_falls_back_on_any_error_of_the_client(self):
        router = create_router(Recorder(error=KeyError("outputs")), self)
        for choice in (router.choose(1000, POOL), asyncio.run(router.choose_async(1000, POOL))):
            self.assertEqual((choice.model_version, choice.error.code), ("", "unknown"))
            self.assertIn("KeyError", str(choice.error))

    def test_falls_back_when_something_else_answers(self):
        with Answers(b'{"status": "ok"}') as url:
            client = Client(url, deadline=10)
            self.addCleanup(client.close)
            router = create_router(client, self)
            for choice in (router.choose(1000, POOL), asyncio.run(router.choose_async(1000, POOL))):
                self.assertEqual((choice.model_version, choice.error.code), ("", "unknown"))

    def test_the_event_loop_gets_a_choice_after_the_end(self):
        router = create_router(Recorder({"10.0.0.1": 10.0}), self)
        router.close()
        self.assertIsNotNone(asyncio.run(router.choose_async(1000, POOL)).error)

    def test_stops_asking_for_a_while_when_the_client_does_not_keep_its_deadline(self):
        client = Stuck()
        self.addCleanup(client.end.set)
        router = create_router(client, self)
        for _ in range(10):
            asyncio.run(router.choose_async(1000, POOL))
        self.assertEqual(client.asked, 3)

    def test_counts_a_late_failure_once(self):
        client = Stuck()
        router = create_router(client, self)
        for _ in range(2):
            asyncio.run(router.choose_async(1000, POOL))
        client.end.set()
        router.close()
        router._threads.shutdown()
        self.assertEqual(router._failures, 2)

    def test_takes_numbers_that_are_not_whole(self):
        client = Recorder({"10.0.0.1": 10.0})
        router = create_router(client, self)
        router.set_metrics("10.0.0.1", waiting=3.0, kv_cache_usage=Fraction(1, 2))
        router.choose(1000.0, POOL[:1])
        router.choose(1000.0, POOL[:1])
        asked = client.asked[1][0]
        numbers = (asked.num_request_waiting, asked.kv_cache_usage, asked.input_token_length, asked.inflight_tokens)
        self.assertEqual([repr(one) for one in numbers], ["4", "0.5", "1000", "1000"])

    def test_rounds_to_what_messages_can_have(self):
        client = Recorder({"10.0.0.1": 10.0})
        router = create_router(client, self)
        router.set_metrics("10.0.0.1", waiting=1e12)
        router.choose(312.75, POOL[:1])
        router.choose(float("nan"), POOL[:1])
        numbers = [(asked[0].num_request_waiting, asked[0].input_token_length) for asked in client.asked]
        self.assertEqual(numbers, [(2**31 - 1, 313), (2**31 - 1, 0)])
        self.assertEqual(messages.finished("r", 2.0, 180.6)["finished"]["outputTokens"], 181)

    def test_needs_a_candidate_and_possible_metrics(self):
        router = create_router(Recorder(), self)
        with self.assertRaisesRegex(ValueError, "there are no candidates"):
            router.choose(1000, [])
        for value in (-1, float("nan"), float("inf")):
            with self.subTest(value), self.assertRaisesRegex(ValueError, "kv_cache_usage must be a number of 0 or more"):
                router.set_metrics("10.0.0.1", kv_cache_usage=value)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class LoadTest(unittest.TestCase):
    def test_a_server_that_got_no_request_for_long_gets_the_next(self):
        load, candidates = Load(), [Candidate(one) for one in POOL]
        load.of("10.0.0.2")
        for _ in range(EXPLORE_AFTER * len(POOL) + 1):
            load.dispatched("10.0.0.1", 10)(5)
        predictions = {i: Prediction(i, "", 100.0 if i % 2 == 0 else 900.0, 10.0) for i in range(4)}
        self.assertEqual(load.rank(candidates, predictions), [1, 0])

    def test_a_server_without_an_answer_or_with_old_metrics_is_not_measured_again(self):
        clock = Clock()
        load, candidates = Load(clock=clock), [Candidate(one) for one in POOL]
        load.of("10.0.0.2")
        for _ in range(EXPLORE_AFTER * len(POOL) + 1):
            load.dispatched("10.0.0.1", 10)(5)
        predictions = {i: Prediction(i, "", 100.0, 10.0) for i in range(4)}
        without_answer = {i: predictions[i] for i in (0, 2, 3)}
        self.assertEqual(load.rank(candidates, without_answer), [0, 1])
        self.assertEqual(load.rank(candidates, predictions), [1, 0])
        load.set_metrics("10.0.0.2", 0, 0.0)
        clock.now = 5.1
        self.assertEqual(load.rank(candidates, predictions), [0, 1])
        only_old = {i: predictions[i] for i in (1, 3)}
        self.assertEqual(load.rank(candidates, only_old), [0, 1])

    def test_a_prediction_that_is_no_number_comes_last(self):
        load, candidates = Load(), [Candidate(one) for one in POOL]
        predictions = {i: Prediction(i, "", float("nan") if i % 2 == 0 else 900.0, 10.0) for i in range(4)}
        self.assertEqual(load.rank(candidates, predictions), [1, 0])

    def test_metrics_that_are_old_do_not_count(self):
        clock = Clock()
        load, candidates = Load(clock=clock), [Candidate(one) for one in POOL]
        load.set_metrics("10.0.0.1", 9, 0.9)
        load.set_metrics("10.0.0.2", 9, 0.9)
        clock.now = 5.0
        self.assertEqual([one.num_request_waiting for one in load.ask(10, candidates)], [9, 9, 0, 0])
        clock.now = 5.1
        load.dispatched("10.0.0.1", 10)
        self.assertEqual([(one.num_request_waiting, one.kv_cache_usage) for one in load.ask(10, candidates)], [(0, 0.0)] * 4)
        self.assertEqual(load.rank_by_load(candidates), [1, 0])

    def test_a_server_whose_metrics_are_old_comes_after_others(self):
        clock = Clock()
        load, candidates = Load(max_metrics_age=30, clock=clock), [Candidate(one) for one in (*POOL, "10.0.0.3")]
        load.set_metrics("10.0.0.1", 0, 0.0)
        clock.now = 31.0
        load.set_metrics("10.0.0.2", 9, 0.9)
        predictions = {i: Prediction(i, "", 100.0 + i, 10.0) for i in range(6)}
        for order in (load.rank(candidates, predictions), load.rank_by_load(candidates)):
            self.assertEqual(order[-1], 0)
        load.set_metrics("10.0.0.1", 0, 0.0)
        self.assertEqual(load.rank(candidates, predictions)[0], 0)

    def test_servers_that_were_no_candidate_for_an_hour_are_forgotten(self):
        clock = Clock()
        load = Load(clock=clock)
        for name in ("idle", "busy"):
            load.set_metrics(name, 0, 0.0)
        clock.now = 1.0
        ended = load.dispatched("busy", 10)
        clock.now = FORGET_AFTER
        load.ask(10, [Candidate("10.0.0.1")])
        self.assertEqual(set(load.servers), {"busy", "10.0.0.1"})
        ended(5)
        clock.now = 2 * FORGET_AFTER - 1
        load.ask(10, [Candidate("10.0.0.1")])
        clock.now = 2 * FORGET_AFTER
        load.ask(10, [Candidate("10.0.0.2")])
        self.assertEqual(set(load.servers), {"10.0.0.1", "10.0.0.2"})

    def test_a_request_that_its_caller_never_ends_ends_after_an_hour(self):
        clock, candidates = Clock(), [Candidate("10.0.0.1")]
        load = Load(clock=clock)
        ended = load.dispatched("10.0.0.1", 1000)
        clock.now = 1.0
        load.dispatched("10.0.0.1", 500)
        clock.now = LONGEST_REQUEST
        asked = load.ask(10, candidates)[0]
        self.assertEqual((asked.num_request_running, asked.inflight_tokens), (1, 500))
        ended(20)
        self.assertEqual(load.ask(10, candidates)[0].num_request_running, 1)

    def test_equal_servers_take_turns(self):
        load, candidates = Load(), [Candidate(one) for one in POOL]
        equal = {i: Prediction(i, "", 100.0, 10.0) for i in range(4)}
        chosen = []
        for _ in range(4):
            chosen.append(load.rank(candidates, equal)[0])
            load.dispatched(POOL[chosen[-1]], 10)(5)
        self.assertEqual(chosen, [0, 1, 0, 1])


@needs_service
class ServiceTest(unittest.TestCase):
    def test_the_service_takes_every_report_of_a_router(self):
        router = create_router(Client(URL, deadline=30), self)
        for i in range(60):
            choice = router.choose(500 + 10 * i, POOL)
            self.assertIsNone(choice.error)
            choice.first_token(0.12)
            choice.finished(181, 2.0)
        reported = router.close()
        self.assertEqual((reported.accepted, reported.refused, router.reporter.dropped), (180, 0, 0))

    def test_a_queue_sends_requests_elsewhere(self):
        router = create_router(Client(URL, deadline=30), self)
        router.set_metrics("10.0.0.1", waiting=40, kv_cache_usage=0.9)
        self.assertEqual(asyncio.run(router.choose_async(1000, POOL)).address, "10.0.0.2")
