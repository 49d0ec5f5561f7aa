import time
import unittest
import uuid
from fractions import Fraction

from trivet import Client, Input, Reporter, TrivetError
from trivet.messages import at, dispatched, finished, first_token

from .service import URL, Answers, Silent, needs_service


class ClientTest(unittest.TestCase):
    def test_a_service_that_never_answers_is_unavailable_after_the_deadline(self):
        with Silent() as url:
            with self.assertRaises(TrivetError) as raised:
                Client(url, deadline=0.02).predict("qwen3-32b", [Input()])
        self.assertEqual(raised.exception.code, "unavailable")

    def test_a_closed_port_is_unavailable(self):
        with self.assertRaises(TrivetError) as raised:
            Client("http://127.0.0.1:1").predict("qwen3-32b", [Input()])
        self.assertEqual(raised.exception.code, "unavailable")

    def test_an_address_without_a_host_is_refused(self):
        for url in ("127.0.0.1:8080", "ftp://host", "http://"):
            with self.subTest(url), self.assertRaises(ValueError):
                Client(url)

    def test_an_answer_that_is_not_json_is_an_error(self):
        with Answers(b"<html>") as url, self.assertRaises(TrivetError) as raised:
            Client(url, deadline=10).predict("qwen3-32b", [Input()])
        self.assertIn("is not JSON", str(raised.exception))

    def test_an_answer_of_something_else_is_an_error(self):
        for body in (b'{"status": "ok"}', b"[]", b'{"outputs": [{}], "metadata": {}, "accepted": "many", "refused": "0"}'):
            with self.subTest(body), Answers(body) as url:
                client = Client(url, deadline=10)
                self.addCleanup(client.close)
                for ask in (lambda: client.predict("qwen3-32b", [Input()]), lambda: client.report([finished("r1", 1.0, 2)])):
                    with self.assertRaises(TrivetError) as raised:
                        ask()
                    self.assertEqual(raised.exception.code, "unknown")

    def test_inputs_that_json_cannot_carry_are_an_error(self):
        for value in (float("nan"), object()):
            with self.subTest(value), self.assertRaises(TrivetError) as raised:
                Client().predict("qwen3-32b", [Input(kv_cache_usage=value)])
            self.assertEqual(raised.exception.code, "invalid_argument")

    def test_a_token_goes_over_tls_within_this_machine_or_where_an_option_allows_it(self):
        for url in ("http://10.0.0.5:8080", "http://trivet", "http://127.0.0.1.example"):
            with self.assertRaisesRegex(ValueError, "without TLS"):
                Client(url, token="secret")
            Client(url)
            Client(url, token="secret", allows_token_in_clear=True)
        for url in ("http://127.0.0.1:1", "http://LOCALHOST", "http://[::1]:1", "https://trivet"):
            Client(url, token="secret")

    def test_a_token_that_http_cannot_carry_is_an_error(self):
        with Answers(b"{}") as url, self.assertRaises(TrivetError):
            Client(url, token="a\nb").predict("qwen3-32b", [Input()])

    def test_events_that_json_cannot_carry_are_refused(self):
        reported = Client().report([first_token("r1", float("nan")), {"finished": object()}, first_token("\ud83d", 1.0)])
        self.assertEqual((reported.accepted, reported.refused), (0, 3))
        self.assertEqual(reported.reasons[0], "cannot encode the event: Out of range float values are not JSON compliant")

    def test_a_refusal_says_when_the_service_wants_the_next_try(self):
        for header, seconds in (("7", 7.0), ("86400", 300.0), ("Wed, 21 Oct 2037 07:28:00 GMT", 0.0), ("\u00b2", 0.0)):
            with self.subTest(header), Answers(b"{}", 503, {"Retry-After": header}) as url:
                client = Client(url, deadline=10)
                self.addCleanup(client.close)
                with self.assertRaises(TrivetError) as raised:
                    client.predict("qwen3-32b", [Input()])
                self.assertEqual(raised.exception.retry_after, seconds)

    def test_a_refusal_says_whether_the_service_never_takes_the_message(self):
        for body, status, is_final in (
            (b"<html>", 413, True),
            (b'{"code": "resource_exhausted", "message": "too large"}', 413, True),
            (b'{"code": "resource_exhausted", "message": "busy"}', 429, False),
            (b'{"code": "invalid_argument", "message": "unreadable"}', 400, True),
            (b"<html>", 404, False),
        ):
            with self.subTest((body, status)), Answers(body, status) as url, self.assertRaises(TrivetError) as raised:
                Client(url, deadline=10).predict("qwen3-32b", [Input()])
            self.assertEqual((raised.exception.status, raised.exception.is_final), (status, is_final))

    def test_a_connection_that_the_service_closed_is_replaced(self):
        body = b'{"outputs": [], "metadata": {"modelVersion": "prior@1", "omittedInputs": 0}}'
        with Answers(body) as url:
            client = Client(url, deadline=10)
            for _ in range(3):
                self.assertEqual(client.predict("qwen3-32b", []).model_version, "prior@1")
            client.close()


@needs_service
class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.client = Client(URL, deadline=30)
        self.addCleanup(self.client.close)

    def test_predicts_for_each_input_in_its_order(self):
        inputs = [
            Input(input_id=7, server_ip="10.0.0.1", input_token_length=500),
            Input(input_id=-1, server_ip="10.0.0.2", input_token_length=5000, num_request_waiting=9),
        ]
        answer = self.client.predict("python-client", inputs)
        self.assertEqual([(one.input_id, one.server_ip) for one in answer.predictions], [(7, "10.0.0.1"), (-1, "10.0.0.2")])
        self.assertLess(answer.predictions[0].ttft_millis, answer.predictions[1].ttft_millis)
        self.assertEqual((answer.model_version, answer.omitted_inputs), ("prior@1", 0))

    def test_counts_inputs_that_cannot_be_true(self):
        answer = self.client.predict("python-client", [Input(kv_cache_usage=-1), Input(kv_cache_usage=0.5)])
        self.assertEqual((len(answer.predictions), answer.omitted_inputs), (1, 1))

    def test_raises_what_the_service_refuses(self):
        with self.assertRaises(TrivetError) as raised:
            self.client.predict("", [Input()])
        self.assertEqual(raised.exception.code, "invalid_argument")
        self.assertIn("target_model must not be empty", str(raised.exception))

    def test_reports_events_and_names_what_is_refused(self):
        name = uuid.uuid4().hex
        events = [
            dispatched(name, "python-client", Input(server_ip="10.0.0.1", input_token_length=500), at(time.time())),
            first_token(name, 0.2),
            first_token(name, -0.2),
            finished(name, 1.0, 21),
        ]
        reported = self.client.report(events)
        self.assertEqual((reported.accepted, reported.refused), (3, 1))
        self.assertEqual(reported.reasons, ["ttft_millis must be more than 0 and at most a day, got -200"])

    def test_one_event_that_cannot_be_encoded_never_fails_the_others(self):
        check_one_bad_event(self, self.client)


def check_one_bad_event(test, client):
    """Reports NaN as the first time of a request among good events, whose numbers are not all Python's own."""
    name = uuid.uuid4().hex
    end = finished(name, 1.0, 21)
    end["finished"]["outputTokens"] = Whole()
    reporter = Reporter(client, interval=0.01)
    chosen = Input(server_ip="10.0.0.1", input_token_length=500)
    reporter.send([dispatched(name, "python-client", chosen, at(time.time())), first_token(name, float("nan"))])
    reporter.send([first_token(name, Fraction(1, 5)), end])
    reported = reporter.close()
    test.assertEqual((reported.accepted, reported.refused, reporter.dropped), (3, 1, 0))
    test.assertIn("cannot encode the event", reported.reasons[0])


class Whole:
    """A whole number that is not Python's own, as NumPy has them."""

    def __index__(self):
        return 21
