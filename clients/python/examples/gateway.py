"""Routes made-up requests to a made-up pool: a fast server and one that takes three times as long.

python3 examples/gateway.py                          over HTTP, with the standard library
python3 examples/gateway.py --grpc 127.0.0.1:50051   over gRPC, after ./generate.sh; unix:///path works too
"""

import argparse
import collections
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(FOLDER), str(FOLDER / "gen")]
from trivet import Client, Router  # noqa: E402

#: Seconds for each output token.
POOL = {"10.0.0.1": 0.010, "10.0.0.2": 0.030}
OUTPUT_TOKENS = 100
#: A long deadline, to show predictions on a busy machine too. A gateway gives 0.05.
DEADLINE = 1.0


def connect(options):
    if options.grpc is None:
        return Client(options.http, deadline=DEADLINE)
    try:
        import grpc
        from observation.v1 import observation_pb2
        from prediction.v1 import prediction_pb2

        from trivet.grpc_client import CHANNEL_OPTIONS, GrpcClient
    except ImportError as error:
        sys.exit(f"{error}: gRPC needs grpcio and protobuf in {sys.executable}, and ./generate.sh")

    channel = grpc.insecure_channel(options.grpc, CHANNEL_OPTIONS)
    return GrpcClient(channel, prediction_pb2, observation_pb2, deadline=DEADLINE)


def route(router, requests):
    servers, versions = collections.Counter(), collections.Counter()
    for i in range(requests):
        prompt_tokens = 200 + i % 1800
        choice = router.choose(prompt_tokens, list(POOL))
        servers[choice.address] += 1
        versions[choice.model_version or "fallback"] += 1
        # A gateway sends the request here. Without arguments, the two calls below measure the time themselves.
        per_token = POOL[choice.address]
        choice.first_token(prompt_tokens * per_token / 50)
        choice.finished(OUTPUT_TOKENS, (OUTPUT_TOKENS - 1) * per_token)
    return servers, versions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--http", default="http://127.0.0.1:8080", help="address of the service")
    parser.add_argument("--grpc", help="host:port of gRPC, or unix:///path")
    parser.add_argument("--requests", type=int, default=300)
    options = parser.parse_args()
    router = Router(connect(options), "qwen3-32b")
    servers, versions = route(router, options.requests)
    reported = router.close()
    print("requests by server:", dict(servers))
    print("by model version:", dict(versions))
    print(f"reported: accepted {reported.accepted}, refused {reported.refused}, dropped {router.reporter.dropped}")


main()
