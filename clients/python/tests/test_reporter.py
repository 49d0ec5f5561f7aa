import threading
import unittest

from trivet import Reported, Reporter, TrivetError


class ReporterTest(unittest.TestCase):
    def test_keeps_events_while_the_service_is_away(self):
        client = Away(failures=2)
        reporter = Reporter(client, interval=0.01)
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
        client = Away(failures=1, code="unauthenticated")
        reporter = Reporter(client, interval=0.01)
        reporter.send([{"finished": {}}])
        reported = reporter.close()
        self.assertEqual((reported.accepted, reporter.dropped), (0, 1))
        self.assertEqual(reported.reasons, ["unauthenticated: away"])

    def test_goes_on_after_an_error_that_is_not_of_the_service(self):
        client = Broken()
        reporter = Reporter(client, interval=0.01)
        reporter.send([{"finished": {}}])
        client.failed.wait(5)
        reporter.send([{"finished": {}}])
        reported = reporter.close()
        self.assertEqual((reported.accepted, reporter.dropped), (1, 1))
        self.assertEqual(reported.reasons, ["ValueError('broken')"])


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

    def __init__(self, failures, code="unavailable"):
        self.failures, self.code = failures, code

    def report(self, events):
        if self.failures > 0:
            self.failures -= 1
            raise TrivetError(self.code, "away")
        return Reported(len(events), 0)
