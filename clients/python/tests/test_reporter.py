import os
import threading
import time
import unittest
import uuid

from trivet import Client, Input, Reported, Reporter, Router, ReporterStats, TrivetError
from trivet.messages import at, dispatched, finished, first_token

from .service import URL, needs_service, wait_until

PREDICT_TOKEN = os.environ.get("TRIVET_PREDICT_TOKEN", "")
#: Address of a service that takes at most 20,000 bytes at once.
SMALL_URL = os.environ.get("TRIVET_SMALL_URL", "")


class ReporterTest(unittest.TestCase):
    def test_keeps_events_while_the_service_is_away(self):
        client = Away(failures=2)
        reporter = Reporter(client, interval=0.01)
        reporter.send([{"finished": {}}])
        self.assertEqual((reporter.close().accepted, reporter.dropped), (1, 0))

    def test_keeps_events_while_a_proxy_has_no_route_to_the_service(self):
        # Libraries of gRPC make this code of the 404 of a proxy.
        reporter = Reporter(Away(failures=1, code="unimplemented"), interval=0.01)
        reporter.send([{"finished": {}}])
        self.assertEqual((reporter.close().accepted, reporter.dropped), (1, 0))

    def test_drops_and_counts_events_beyond_its_capacity_and_after_its_end(self):
        client = Away(failures=10**6)
        reporter = Reporter(client, interval=0.01, capacity=3)
        reporter.send([{"finished": {}}] * 5)
        self.assertEqual(reporter.dropped, 2)
        reporter.close(timeout=0.05)
        reporter.send([{"finished": {}}])
        self.assertEqual((reporter.dropped, reporter.reported.accepted), (6, 0))

    def test_a_batch_that_is_refused_as_a_whole_is_dropped_with_its_reason(self):
        for code in ("unauthenticated", "permission_denied"):
            with self.subTest(code):
                reporter = Reporter(Away(failures=1, code=code), interval=0.01)
                reporter.send([{"finished": {}}])
                reported = reporter.close()
                self.assertEqual((reported.accepted, reporter.dropped), (0, 1))
                self.assertEqual(reported.reasons, [f"{code}: away"])

    def test_a_batch_that_is_too_large_is_halved_and_batches_grow_again(self):
        client = Small(most=100)
        reporter = Reporter(client, interval=60)
        reporter.send([{"finished": {}}] * 700)
        self.assertEqual((reporter.close().accepted, reporter.dropped), (700, 0))
        self.assertEqual(client.batches, [500, 250, 125, 62, 72, 82, 92, 102, 51, 61, 71, 81, 91, 37])

    def test_one_event_that_is_refused_for_good_never_costs_the_others(self):
        client = Small(bad={"finished": {"requestId": "bad"}})
        reporter = Reporter(client, interval=60)
        reporter.send([client.bad if index == 3 else {"finished": {}} for index in range(20)])
        reported = reporter.close()
        self.assertEqual((reported.accepted, reporter.dropped), (19, 1))
        self.assertEqual(reported.reasons, ["invalid_argument: refused for good"])

    def test_bad_events_are_dropped_without_a_pause_while_good_ones_are_taken(self):
        client = Small(bad={"finished": {"requestId": "bad"}})
        reporter = Reporter(client)
        start = time.monotonic()
        reporter.send([client.bad if index % 100 == 50 else {"finished": {}} for index in range(2000)])
        wait_until(lambda: reporter.stats().waiting == 0)
        self.assertLess(time.monotonic() - start, 3)
        self.assertEqual((reporter.close().accepted, reporter.dropped), (1980, 20))

    def test_a_forbidden_batch_is_followed_by_a_full_one(self):
        client = Small(bad={"finished": {"requestId": "bad"}})
        reporter = Reporter(client, interval=60)
        reporter.send([client.bad] + [{"finished": {}}] * 499)
        wait_until(lambda: reporter.stats().dropped == 1)
        client.forbids = True
        reporter.send([{"finished": {}}] * 500)
        reporter.close()
        self.assertEqual(client.batches[-3:], [1, 500, 498])
        self.assertEqual(reporter.dropped, 1000)

    def test_an_answer_that_comes_after_close_gave_up_is_not_counted_again(self):
        client = Slow()
        reporter = Reporter(client, interval=0.01)
        reporter.send([{"finished": {}}] * 3)
        client.came.wait(5)
        reported = reporter.close(timeout=0)
        client.answer.set()
        reporter._thread.join(5)
        self.assertEqual((reported.accepted, reporter.reported.accepted, reporter.dropped), (0, 0, 3))

    def test_goes_on_after_an_error_that_is_not_of_the_service(self):
        client = Broken()
        reporter = Reporter(client, interval=0.01)
        reporter.send([{"finished": {}}])
        client.failed.wait(5)
        reporter.send([{"finished": {}}])
        reported = reporter.close()
        self.assertEqual((reported.accepted, reporter.dropped), (1, 1))
        self.assertEqual(reported.reasons, ["ValueError('broken')"])


    def test_says_and_logs_why_reports_fail_while_it_runs(self):
        client = Away(failures=2)
        with self.assertLogs("trivet", "WARNING") as logs:
            reporter = Reporter(client, interval=0.01)
            reporter.send([{"finished": {}}])
            client.succeeded.wait(5)
            self.assertEqual(reporter.stats().last_error, "unavailable: away")
            reporter.close()
        self.assertEqual(reporter.stats(), ReporterStats(0, 1, 0, 0, "unavailable: away"))
        (line,) = logs.output
        self.assertIn("Cannot report every event to Trivet: unavailable: away", line)
        self.assertIn("(1 wait, 0 were accepted, 0 refused, 0 dropped)", line)

    def test_tries_once_an_interval_however_many_events_wait_and_arrive(self):
        client = Away(failures=10**6)
        reporter = Reporter(client, interval=0.5)
        reporter.send([{"finished": {}}] * 500)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            reporter.send([{"finished": {}}])
            # Time is what it tests: a gateway sends an event now and then.
            time.sleep(0.001)
        self.assertLessEqual(client.calls, 3)
        reporter.close(timeout=0)

    def test_waits_as_long_as_the_service_asks_for(self):
        client = Away(failures=1, retry_after=0.5)
        reporter = Reporter(client, interval=0.001)
        reporter.send([{"finished": {}}])
        client.succeeded.wait(5)
        self.assertGreaterEqual(client.succeeded_at - client.failed_at, 0.5)
        reporter.close()

    def test_close_does_not_wait_for_the_next_try(self):
        client = Away(failures=1, retry_after=60)
        reporter = Reporter(client, interval=0.001)
        reporter.send([{"finished": {}}])
        wait_until(lambda: reporter._pause > 0)
        self.assertEqual((reporter.close().accepted, reporter.dropped), (1, 0))


def check_sent_in_parts(test, client):
    """Reports more than the service takes at once."""
    reporter = Reporter(client)
    events, now = [], at(time.time())
    for _ in range(200):
        name = uuid.uuid4().hex
        chosen = Input(server_ip="10.0.0.1", input_token_length=1000)
        events += [dispatched(name, "python-client", chosen, now), first_token(name, 0.12), finished(name, 2.0, 181)]
    reporter.send(events)
    reported = reporter.close()
    test.assertEqual((reported.accepted, reported.refused, reporter.dropped), (600, 0, 0))


@unittest.skipUnless(SMALL_URL, "TRIVET_SMALL_URL is not set: a service that takes at most 20,000 bytes at once")
class SmallServiceTest(unittest.TestCase):
    def test_a_batch_that_is_too_large_is_sent_in_parts(self):
        client = Client(SMALL_URL)
        self.addCleanup(client.close)
        check_sent_in_parts(self, client)


@needs_service
@unittest.skipUnless(PREDICT_TOKEN, "TRIVET_PREDICT_TOKEN is not set: a token with the scope predict alone")
class RightsTest(unittest.TestCase):
    def test_a_token_that_must_not_report_shows_while_the_gateway_runs(self):
        client = Client(URL, token=PREDICT_TOKEN, deadline=30)
        self.addCleanup(client.close)
        with self.assertLogs("trivet", "WARNING") as logs:
            reporter = Reporter(client, interval=0.01)
            self.addCleanup(reporter.close)
            router = Router(client, "qwen3-32b", reporter=reporter)
            choice = router.choose(1000, ["10.0.0.1"])
            self.assertIsNone(choice.error)
            choice.first_token(0.1)
            wait_until(lambda: reporter.stats().dropped == 2)
        self.assertIn("permission_denied", reporter.stats().last_error)
        self.assertIn("permission_denied", logs.output[0])


class Small:
    """A client of a service that takes at most so many events at once, and never a bad one."""

    deadline = 1.0

    def __init__(self, most=500, bad=None):
        self.most, self.bad, self.forbids = most, bad, False
        self.batches = []

    def report(self, events):
        self.batches.append(len(events))
        if self.forbids:
            raise TrivetError("permission_denied", "forbidden")
        if len(events) > self.most:
            raise TrivetError("resource_exhausted", "too large", status=413)
        if self.bad in events:
            raise TrivetError("invalid_argument", "refused for good")
        return Reported(len(events), 0)


class Slow:
    """A client that answers once `answer` is set."""

    deadline = 1.0

    def __init__(self):
        self.came, self.answer = threading.Event(), threading.Event()

    def report(self, events):
        self.came.set()
        self.answer.wait(5)
        return Reported(len(events), 0)


class Broken:
    """A client whose first report fails as no client should."""

    deadline = 1.0

    def __init__(self):
        self.failed = threading.Event()

    def report(self, events):
        if not self.failed.is_set():
            self.failed.set()
            raise ValueError("broken")
        return Reported(len(events), 0)


class Away:
    deadline = 1.0

    def __init__(self, failures, code="unavailable", retry_after=0.0):
        self.failures, self.error = failures, TrivetError(code, "away", retry_after)
        self.calls, self.failed_at, self.succeeded_at = 0, 0.0, 0.0
        self.failed, self.succeeded = threading.Event(), threading.Event()

    def report(self, events):
        self.calls += 1
        if self.calls <= self.failures:
            self.failed_at = time.monotonic()
            self.failed.set()
            raise self.error
        self.succeeded_at = time.monotonic()
        self.succeeded.set()
        return Reported(len(events), 0)
