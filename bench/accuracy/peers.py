"""Learns from rows as llm-d's latency predictor does (its features and parameters, mean objective), and predicts others.

Reads one JSON object from standard input: features (rows of numbers), observed (milliseconds), schedule (a list of
{learn, judge} of row numbers). Writes one JSON line a peer: name and predictions, one list for each part of the schedule.
A library that is not installed is named on a line of its own, with "missing".
"""

import json
import os
import sys
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402


def make_xgboost():
    from xgboost import XGBRegressor

    return XGBRegressor(
        n_estimators=200, max_depth=6, learning_rate=0.05, subsample=0.8, colsample_bytree=0.8, min_child_weight=5,
        tree_method="hist", objective="reg:squarederror", n_jobs=1, random_state=42,
    )


def make_lightgbm():
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        n_estimators=200, max_depth=6, learning_rate=0.05, subsample=0.8, colsample_bytree=0.8, min_child_samples=20,
        n_jobs=1, random_state=42, verbose=-1,
    )


def make_ridge():
    from sklearn.linear_model import BayesianRidge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), BayesianRidge())


PEERS = {"XGBoost": make_xgboost, "LightGBM": make_lightgbm, "Bayesian ridge": make_ridge}


def main():
    task = json.load(sys.stdin)
    features = np.array(task["features"], dtype=float)
    observed = np.array(task["observed"], dtype=float)
    for name, make in PEERS.items():
        try:
            make()
        except ImportError:
            print(json.dumps({"name": name, "missing": True}), flush=True)
            continue
        predictions = []
        for part in task["schedule"]:
            model = make()
            model.fit(features[part["learn"]], observed[part["learn"]])
            predictions.append([float(value) for value in model.predict(features[part["judge"]])])
        print(json.dumps({"name": name, "predictions": predictions}), flush=True)


main()
