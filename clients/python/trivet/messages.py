"""Defines the messages of prediction.v1 and observation.v1, and converts them to and from the JSON of proto3."""

from __future__ import annotations

import json
import math
import operator
import time
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import Any, Callable, Dict, List, Mapping, Protocol, Sequence, TypeVar

#: A `Reported` keeps at most this many reasons.
MAX_REASONS = 100
_MAX_INT32 = 2**31 - 1
_Encoded = TypeVar("_Encoded")


@dataclass(frozen=True)
class Input:
    """One candidate server: the request as that server would see it, and the load of the server."""

    input_id: int = 0
    pod_type: str = ""
    input_token_length: int = 0
    prefix_cache_score: float = 0.0
    num_request_waiting: int = 0
    num_request_running: int = 0
    kv_cache_usage: float = 0.0
    inflight_tokens: int = 0
    hbm_utilization: float = 0.0
    ai_core_utilization: float = 0.0
    bandwidth_utilization: float = 0.0
    server_ip: str = ""

    def to_json(self) -> Dict[str, Any]:
        """Returns the fields that are not 0 or empty, under the names of the proto file, which the service accepts too."""
        values = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in values if value}


@dataclass(frozen=True)
class Prediction:
    """The prediction for one input, in milliseconds."""

    input_id: int
    server_ip: str
    ttft_millis: float
    tpot_millis: float


@dataclass(frozen=True)
class Answer:
    """Predictions in the order of the inputs, and the version that answered."""

    predictions: Sequence[Prediction]
    model_version: str
    omitted_inputs: int

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Answer:
        """Reads the answer of Predict."""
        metadata = value["metadata"]
        predictions = [
            Prediction(
                int(output["inputId"]),
                str(output["serverIp"]),
                float(output["predictedTtftMillis"]),
                float(output["predictedTpotMillis"]),
            )
            for output in value["outputs"]
        ]
        return Answer(predictions, str(metadata["modelVersion"]), int(metadata["omittedInputs"]))


@dataclass
class Reported:
    """What became of reported events. `reasons` says why events were refused: the first 100 of a call, the last 100 of a reporter."""

    accepted: int = 0
    refused: int = 0
    reasons: List[str] = field(default_factory=list)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Reported:
        """Reads the answer of ReportBatch. Its counts are 64-bit numbers, which the JSON of proto3 writes as strings."""
        reasons = [str(refusal["reason"]) for refusal in value["refusals"]]
        return Reported(int(value["accepted"]), int(value["refused"]), reasons)


#: An event of observation.v1 as JSON: one key of dispatched, firstToken, finished, observation.
Event = Dict[str, Any]


class Asker(Protocol):
    """What a router needs of a client, over HTTP or gRPC."""

    deadline: float

    def predict(self, model: str, inputs: Sequence[Input]) -> Answer:
        """Returns a prediction for every input that the service did not omit, or raises TrivetError."""

    def report(self, events: Sequence[Event]) -> Reported:
        """Returns once every accepted event is durable, or raises TrivetError."""


def encode(value: Any) -> str:
    """Writes a message as JSON. Raises TypeError or ValueError for what JSON cannot have, such as NaN or a lone surrogate."""
    text = json.dumps(value, default=_to_number, allow_nan=False, ensure_ascii=False)
    text.encode()
    return text


def _to_number(value: Any) -> Any:
    """Converts a number of another library, such as NumPy."""
    return operator.index(value) if hasattr(value, "__index__") else float(value)


def report_encoded(
    events: Sequence[Event], encode_event: Callable[[Event], _Encoded], send: Callable[[List[_Encoded]], Reported]
) -> Reported:
    """Sends the events that can be encoded, and counts the others as refused, so that one bad event never fails the others."""
    encoded: List[_Encoded] = []
    reasons: List[str] = []
    for event in events:
        try:
            encoded.append(encode_event(event))
        except Exception as error:  # noqa: BLE001 (encoders raise errors of their own)
            reasons.append(f"cannot encode the event: {error}")
    reported = send(encoded) if encoded else Reported()
    reported.refused += len(reasons)
    reported.reasons = (reasons + reported.reasons)[:MAX_REASONS]
    return reported


def at(seconds: float) -> str:
    """Formats a time in seconds since the epoch for an event. Events have a time because they may wait before they are sent."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def dispatched(request_id: str, model: str, chosen: Input, moment: str) -> Event:
    """Returns the event that a request was sent to a server."""
    return {"dispatched": {"requestId": request_id, "targetModel": model, "input": chosen.to_json(), "at": moment}}


def first_token(request_id: str, ttft_seconds: float) -> Event:
    """Returns the event that the first token arrived just now."""
    return {"firstToken": {"requestId": request_id, "ttftMillis": ttft_seconds * 1000, "at": at(time.time())}}


def finished(request_id: str, elapsed_seconds: float, output_tokens: int) -> Event:
    """Returns the event that the answer ended just now, `elapsed_seconds` after its first token."""
    tokens = to_int32(output_tokens)
    event: Event = {"requestId": request_id, "outputTokens": tokens, "at": at(time.time())}
    if tokens > 1:
        event["tpotMillis"] = elapsed_seconds * 1000 / (tokens - 1)
    return {"finished": event}


def to_int32(value: float) -> int:
    """Rounds for an int32 of a message: the JSON API refuses a whole prediction or report because of any other number. NaN becomes 0."""
    return 0 if math.isnan(value) else int(round(max(-_MAX_INT32, min(value, _MAX_INT32))))


def check_amount(name: str, value: float) -> float:
    """Returns a possible count or share; raises ValueError for an impossible one."""
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a number of 0 or more, got {value}")
    return value
