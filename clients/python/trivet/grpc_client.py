"""Calls Predict and ReportBatch over gRPC, with grpcio and the messages that protoc generates from the project's proto folder."""

from __future__ import annotations

import re
from typing import Any, List, Optional, Sequence

import grpc
from google.protobuf import json_format

from .client import TrivetError
from .messages import Answer, Event, Input, Prediction, Reported, report_encoded

_REPORT_SECONDS = 10.0
_TOO_LARGE_FOR_TRIVET = re.compile(r"it must be at most \d+ bytes")
#: 413 as grpcio describes it, and as Envoy writes it in an answer with status 200.
_TOO_LARGE_FOR_PROXY = re.compile(r"Received http2 header with status: 413|(Payload|Content|Request Entity) Too Large", re.I)

#: Options for the channel. A ping every 10 s detects within 15 s that the service is gone without having closed its
#: connections, as after a power failure. The system alone would take some 15 minutes, and each call its whole deadline.
#: A service that is available again is reached within some two seconds. gRPC alone waits up to two minutes between attempts.
CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # This also limits an attempt to connect: with less, a busy service might never be reached.
    ("grpc.min_reconnect_backoff_ms", 2000),
)


class GrpcClient:
    """Takes a channel and the modules prediction_pb2 and observation_pb2.

    ``GrpcClient(grpc.insecure_channel("127.0.0.1:50051", CHANNEL_OPTIONS), prediction_pb2, observation_pb2)``
    """

    def __init__(
        self,
        channel: grpc.Channel,
        prediction: Any,
        observation: Any,
        *,
        token: Optional[str] = None,
        deadline: float = 0.05,
    ) -> None:
        self.deadline = deadline
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self._prediction = prediction
        self._observation = observation
        self._predict = channel.unary_unary(
            "/prediction.v1.PredictionService/Predict",
            request_serializer=prediction.PredictRequest.SerializeToString,
            response_deserializer=prediction.PredictResponse.FromString,
        )
        self._report = channel.unary_unary(
            "/observation.v1.ObservationService/ReportBatch",
            request_serializer=observation.ReportBatchRequest.SerializeToString,
            response_deserializer=observation.ReportResponse.FromString,
        )

    def predict(self, model: str, inputs: Sequence[Input]) -> Answer:
        """Predicts for every input; raises TrivetError."""
        try:
            encoded = [self._prediction.PredictInput(**one.to_json()) for one in inputs]
            request = self._prediction.PredictRequest(target_model=model, inputs=encoded)
        except (TypeError, ValueError) as error:
            raise TrivetError("invalid_argument", f"cannot encode the inputs: {error}") from error
        answer = self._call(self._predict, request, self.deadline)
        predictions = [
            Prediction(one.input_id, one.server_ip, one.predicted_ttft_millis, one.predicted_tpot_millis)
            for one in answer.outputs
        ]
        return Answer(predictions, answer.metadata.model_version, answer.metadata.omitted_inputs)

    def report(self, events: Sequence[Event]) -> Reported:
        """Reports up to 10,000 events; returns once they are durable, or raises TrivetError."""
        return report_encoded(events, self._encode, self._send)

    def _encode(self, event: Event) -> Any:
        return json_format.ParseDict(event, self._observation.Event())

    def _send(self, events: List[Any]) -> Reported:
        answer = self._call(self._report, self._observation.ReportBatchRequest(events=events), _REPORT_SECONDS)
        return Reported(answer.accepted, answer.refused, [refusal.reason for refusal in answer.refusals])

    def _call(self, method: Any, request: Any, seconds: float) -> Any:
        try:
            return method(request, timeout=seconds, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _to_trivet_error(error) from error
        except ValueError as error:
            # The channel is closed.
            raise TrivetError("unavailable", str(error)) from error


def _to_trivet_error(error: Any) -> TrivetError:
    code, details = error.code(), error.details() or ""
    status = 413 if _is_too_large(code, details) else 0
    return TrivetError(code.name.lower(), details, _read_retry_after(error), status)


def _is_too_large(code: Any, details: str) -> bool:
    """Checks the text too: rate limits also answer with RESOURCE_EXHAUSTED, and gRPC has no code for the 413 of a proxy."""
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return _TOO_LARGE_FOR_TRIVET.search(details) is not None
    return code is grpc.StatusCode.UNKNOWN and _TOO_LARGE_FOR_PROXY.fullmatch(details) is not None


def _read_retry_after(error: Any) -> float:
    for name, value in error.trailing_metadata() or ():
        if name == "grpc-retry-pushback-ms" and value.isdecimal():
            return int(value) / 1000
    return 0.0
