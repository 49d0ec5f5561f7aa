"""The prediction server of the field, as documented: FastAPI, pydantic, pandas and two XGBoost models of 200 trees of depth 6.

It answers predict/bulk/strict like llm-d's prediction server does on its fast path: rows are validated by pydantic, features
are columns of a data frame, the answer is built of plain dicts and written by orjson when that is installed. Without its
ensemble of two models per target, which would make it slower. Started by bench/llm-d.ts.
"""
import sys
import time
from datetime import datetime, timezone
from typing import List, Optional

import numpy as np
import pandas as pd
import uvicorn
import xgboost as xgb
from fastapi import FastAPI, Response
from pydantic import BaseModel, Field

try:
    import orjson

    def write_json(value):
        return orjson.dumps(value)

    def write_time(value):
        return value
except ImportError:
    import json

    def write_json(value):
        return json.dumps(value).encode()

    def write_time(value):
        return value.isoformat()

LENGTH = {"min_length": 1, "max_length": 10000}
try:
    Rows = Field(..., **LENGTH)
    import pydantic

    if pydantic.VERSION.startswith("1."):
        Rows = Field(..., min_items=1, max_items=10000)
except ImportError:
    pass


class PredictionRequest(BaseModel):
    kv_cache_percentage: float = Field(..., ge=0.0, le=1.0)
    input_token_length: int = Field(..., ge=0)
    num_request_waiting: int = Field(..., ge=0)
    num_request_running: int = Field(..., ge=0)
    num_tokens_generated: int = Field(..., ge=0)
    prefix_cache_score: float = Field(..., ge=0.0, le=1.0)
    pod_type: Optional[str] = ""
    prefill_tokens_in_flight: int = Field(0, ge=0)
    decode_tokens_in_flight: int = Field(0, ge=0)
    encoder_matched_size: int = Field(0, ge=0)
    encoder_input_size: int = Field(0, ge=0)


class BulkPredictionRequest(BaseModel):
    requests: List[PredictionRequest] = Rows


LOAD = ["kv_cache_percentage", "input_token_length", "num_request_waiting", "num_request_running"]
IN_FLIGHT = ["prefill_tokens_in_flight", "decode_tokens_in_flight"]
ENCODER = ["encoder_matched_size", "encoder_input_size"]
POD_TYPES = ["", "prefill", "decode"]


def to_features(columns, pod_types, target):
    frame = pd.DataFrame(columns)
    frame["pod_type_cat"] = pd.Categorical(pod_types, categories=POD_TYPES)
    frame["is_queued"] = (frame["num_request_waiting"] > 0).astype(int)
    if target == "tpot":
        return frame[["is_queued", *LOAD, *IN_FLIGHT, "num_tokens_generated", "pod_type_cat"]]
    frame["effective_input_tokens"] = (1 - frame["prefix_cache_score"]) * frame["input_token_length"]
    bucket = (frame["prefix_cache_score"].clip(0, 1) * 4).astype(int).clip(upper=3)
    frame["prefill_score_bucket"] = pd.Categorical(bucket, categories=[0, 1, 2, 3], ordered=True)
    names = ["is_queued", *LOAD, *IN_FLIGHT, *ENCODER, "prefix_cache_score", "effective_input_tokens"]
    return frame[[*names, "prefill_score_bucket", "pod_type_cat"]]


def train(target):
    """On made-up rows: what it predicts does not matter, how many trees it walks does."""
    random = np.random.default_rng(1)
    count = 5000
    columns = {
        "kv_cache_percentage": random.random(count),
        "input_token_length": random.integers(1, 8000, count).astype(float),
        "num_request_waiting": random.integers(0, 10, count).astype(float),
        "num_request_running": random.integers(0, 60, count).astype(float),
        "num_tokens_generated": np.ones(count),
        "prefix_cache_score": random.random(count),
        "prefill_tokens_in_flight": random.integers(0, 30000, count).astype(float),
        "decode_tokens_in_flight": np.zeros(count),
        "encoder_matched_size": np.zeros(count),
        "encoder_input_size": np.zeros(count),
    }
    uncached = (1 - columns["prefix_cache_score"]) * columns["input_token_length"]
    times = {
        "ttft": 30 + 0.1 * uncached + 40 * columns["num_request_waiting"],
        "tpot": 8 + 0.4 * columns["num_request_running"] + 5 * columns["kv_cache_percentage"],
    }
    model = xgb.XGBRegressor(
        n_estimators=200, max_depth=6, learning_rate=0.05, tree_method="hist", n_jobs=1, enable_categorical=True
    )
    model.fit(to_features(columns, [""] * count, target), times[target] * random.lognormal(0, 0.1, count))
    return model


ttft_model = train("ttft")
tpot_model = train("tpot")
app = FastAPI()
NAMES = [*LOAD, "num_tokens_generated", "prefix_cache_score", *IN_FLIGHT, *ENCODER]


@app.get("/readyz")
async def readyz():
    return {"status": "ready"}


@app.post("/predict/bulk/strict")
async def predict_bulk_strict(request: BulkPredictionRequest):
    started = time.time()
    rows = request.requests
    count = len(rows)
    columns = {
        name: np.fromiter((getattr(row, name) for row in rows), dtype=np.float64, count=count) for name in NAMES
    }
    pod_types = [row.pod_type or "" for row in rows]
    ttft = np.maximum(ttft_model.predict(to_features(columns, pod_types, "ttft")), 0.0).tolist()
    tpot = np.maximum(tpot_model.predict(to_features(columns, pod_types, "tpot")), 0.0).tolist()
    now = write_time(datetime.now(timezone.utc))
    predictions = [
        {
            "ttft_ms": ttft[i],
            "tpot_ms": tpot[i],
            "predicted_at": now,
            "model_type": "xgboost",
            "objective_type": "quantile",
            "quantile": 0.9,
            "last_model_load": now,
        }
        for i in range(count)
    ]
    body = {
        "predictions": predictions,
        "total_requests": count,
        "successful_predictions": count,
        "failed_predictions": 0,
        "processing_time_ms": (time.time() - started) * 1000,
    }
    return Response(write_json(body), media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
