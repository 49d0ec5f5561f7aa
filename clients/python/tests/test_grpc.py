"""The client over gRPC: needs grpcio and the modules that generate.sh writes, and in part a service."""

import contextlib
import os
import pathlib
import sys
import time
import unittest
from concurrent import futures

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "gen"))
try:
    import grpc
    from observation.v1 import observation_pb2
    from prediction.v1 import prediction_pb2
except ImportError:
    grpc = None
else:
    from trivet.grpc_client import CHANNEL_OPTIONS, GrpcClient

from trivet import Input, Router, TrivetError  # noqa: E402

from .service import Proxy, wait_until  # noqa: E402
from .test_client import check_one_bad_event  # noqa: E402
from .test_reporter import check_sent_in_parts  # noqa: E402

#: Address of the gRPC port of a running Trivet.
ADDRESS = os.environ.get("TRIVET_GRPC", "")
#: Address of a service that takes messages of at most 20,000 bytes.
SMALL_ADDRESS = os.environ.get("TRIVET_SMALL_GRPC", "")
SMALL_PROXY = os.environ.get("TRIVET_SMALL_PROXY", "")
needs_grpc = unittest.skipIf(grpc is None, "grpcio and protobuf are not installed, or gen/ is not generated")
needs_service = unittest.skipUnless(ADDRESS, "TRIVET_GRPC is not set, for example 127.0.0.1:50051")


def connect(test, address, **options):
    channel = grpc.insecure_channel(address, CHANNEL_OPTIONS)
    test.addCleanup(channel.close)
    return GrpcClient(channel, prediction_pb2, observation_pb2, **options), channel


@contextlib.contextmanager
def refuse_every_call(code, details, trailers=()):
    def refuse(_request, context):
        context.set_trailing_metadata(trailers)
        context.abort(getattr(grpc.StatusCode, code), details)

    class Handler(grpc.GenericRpcHandler):
        def service(self, _call):
            return grpc.unary_unary_rpc_method_handler(refuse)

    server = grpc.server(futures.ThreadPoolExecutor(1), [Handler()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


@needs_grpc
class ClientTest(unittest.TestCase):
    def test_inputs_that_protobuf_cannot_carry_are_an_error(self):
        client, _ = connect(self, "127.0.0.1:1")
        for chosen in (Input(input_token_length="many"), Input(num_request_waiting=2**40), Input(server_ip="\ud800")):
            with self.subTest(chosen), self.assertRaises(TrivetError) as raised:
                client.predict("qwen3-32b", [chosen])
            self.assertEqual(raised.exception.code, "invalid_argument")

    def test_a_closed_channel_is_unavailable(self):
        client, channel = connect(self, "127.0.0.1:1")
        channel.close()
        with self.assertRaises(TrivetError) as raised:
            client.predict("qwen3-32b", [Input()])
        self.assertEqual(raised.exception.code, "unavailable")

    def test_a_refusal_says_when_the_service_wants_the_next_try(self):
        pushback = (("grpc-retry-pushback-ms", "7000"),)
        with refuse_every_call("RESOURCE_EXHAUSTED", "busy", pushback) as address, self.assertRaises(TrivetError) as raised:
            connect(self, address, deadline=10)[0].predict("qwen3-32b", [Input()])
        self.assertEqual((raised.exception.code, raised.exception.retry_after), ("resource_exhausted", 7.0))
        self.assertFalse(raised.exception.is_final)

    def test_only_what_cannot_be_read_or_is_too_large_is_never_taken(self):
        for code, details, is_final in (
            ("INVALID_ARGUMENT", "inputs must be at most 4,096", True),
            ("RESOURCE_EXHAUSTED", "Cannot read the message: it must be at most 20000 bytes, got 30000", True),
            ("RESOURCE_EXHAUSTED", "rate limited", False),
            # Envoy answers 413 with status 200 and this text.
            ("UNKNOWN", "Payload Too Large", True),
            ("UNKNOWN", "Received http2 header with status: 413", True),
            ("UNKNOWN", "Cannot reach 10.4.1.3:4130 or 413", False),
        ):
            with self.subTest(details), refuse_every_call(code, details) as address:
                with self.assertRaises(TrivetError) as raised:
                    connect(self, address, deadline=10)[0].predict("qwen3-32b", [Input()])
                self.assertEqual(raised.exception.is_final, is_final)

    @unittest.skipUnless(SMALL_PROXY, "TRIVET_SMALL_PROXY is not set: a proxy that answers every call over HTTP/2 with 413")
    def test_a_message_that_is_too_large_for_a_proxy_is_never_taken(self):
        with self.assertRaises(TrivetError) as raised:
            connect(self, SMALL_PROXY, deadline=10)[0].predict("qwen3-32b", [Input()])
        self.assertEqual((raised.exception.status, raised.exception.is_final), (413, True))


@needs_grpc
@needs_service
class ServiceTest(unittest.TestCase):
    def test_one_event_that_cannot_be_encoded_never_fails_the_others(self):
        client, _ = connect(self, ADDRESS, deadline=30)
        check_one_bad_event(self, client)

    def test_a_service_that_vanished_is_found_again_within_20_seconds(self):
        with Proxy(ADDRESS) as proxy:
            client, _ = connect(self, proxy.address, deadline=30)
            router = Router(client, "qwen3-32b")
            self.addCleanup(router.close)
            self.assertNotEqual(router.choose(500, ["10.0.0.1"]).model_version, "")
            client.deadline = 1.0
            proxy.lose_connections()
            wait_until(lambda: router.choose(500, ["10.0.0.1"]).model_version != "", seconds=20)

    def test_a_service_that_comes_back_after_an_outage_is_found_within_seconds(self):
        with Proxy(ADDRESS, is_away=True) as proxy:
            client, _ = connect(self, proxy.address, deadline=0.1)
            router = Router(client, "qwen3-32b")
            self.addCleanup(router.close)
            # Time is what it tests: with pauses that grow, the attempts of these seconds are over, and the next comes later than allowed.
            end = time.monotonic() + 17
            while time.monotonic() < end:
                self.assertEqual(router.choose(500, ["10.0.0.1"]).model_version, "")
                time.sleep(0.05)
            proxy.come_back()
            client.deadline = 1.0
            wait_until(lambda: router.choose(500, ["10.0.0.1"]).model_version != "", seconds=6)


@needs_grpc
@unittest.skipUnless(SMALL_ADDRESS, "TRIVET_SMALL_GRPC is not set: a service that takes messages of at most 20,000 bytes")
class SmallServiceTest(unittest.TestCase):
    def test_a_batch_that_is_too_large_is_sent_in_parts(self):
        check_sent_in_parts(self, connect(self, SMALL_ADDRESS)[0])
