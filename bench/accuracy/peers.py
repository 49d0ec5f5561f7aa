"""Learns from rows as llm-d's latency predictor does (its features and parameters, mean objective), and predicts others.

Reads one JSON object from standard input: features (rows of numbers), observed (milliseconds), schedule (a list of
{train, test} of row numbers), only (the peers that are asked), quantiles (whether p90 are asked too). Writes one JSON line a peer: name, predictions, one list for
each part of the schedule, and p90 likewise where the library knows quantiles. A library that is not installed is named on a
line of its own, with "missing".
"""

import json
import os
import sys
import warnings

os.environ["OMP_NUM_THREADS"] = "1"
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402

P90_DEVIATIONS = 1.2816


def make_xgboost(**objective):
    from xgboost import XGBRegressor

    return XGBRegressor(
        n_estimators=200, max_depth=6, learning_rate=0.05, subsample=0.8, colsample_bytree=0.8, min_child_weight=5,
        tree_method="hist", n_jobs=1, random_state=42, **{"objective": "reg:squarederror", **objective},
    )


def fit_xgboost(rows, times, quantiles):
    import xgboost

    mean = make_xgboost().fit(rows, times)
    if not quantiles or int(xgboost.__version__.split(".")[0]) < 2:
        return mean.predict, None
    return mean.predict, make_xgboost(objective="reg:quantileerror", quantile_alpha=0.9).fit(rows, times).predict


def fit_lightgbm(rows, times, quantiles):
    from lightgbm import LGBMRegressor

    def fit(**objective):
        model = LGBMRegressor(
            n_estimators=200, max_depth=6, learning_rate=0.05, subsample=0.8, colsample_bytree=0.8, min_child_samples=20,
            n_jobs=1, random_state=42, verbose=-1, **objective,
        )
        return model.fit(rows, times).predict

    return fit(), fit(objective="quantile", alpha=0.9) if quantiles else None


def fit_histogram_boosting(rows, times, quantiles):
    """LightGBM's algorithm and parameters as scikit-learn has them, without subsampling."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    def fit(**loss):
        model = HistGradientBoostingRegressor(
            max_iter=200, max_depth=6, learning_rate=0.05, min_samples_leaf=20, early_stopping=False, random_state=42, **loss
        )
        return model.fit(rows, times).predict

    return fit(), fit(loss="quantile", quantile=0.9) if quantiles else None


def fit_ridge(rows, times, quantiles):
    from sklearn.linear_model import BayesianRidge
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(rows)
    model = BayesianRidge().fit(scaler.transform(rows), times)

    def predict_p90(others):
        mean, deviation = model.predict(scaler.transform(others), return_std=True)
        return mean + P90_DEVIATIONS * deviation

    return lambda others: model.predict(scaler.transform(others)), predict_p90 if quantiles else None


PEERS = {
    "XGBoost": fit_xgboost,
    "LightGBM": fit_lightgbm,
    "histogram boosting": fit_histogram_boosting,
    "Bayesian ridge": fit_ridge,
}


def evaluate(name, fit, task):
    features = np.array(task["features"], dtype=float)
    observed = np.array(task["observed"], dtype=float)
    predictions, p90 = [], []
    for part in task["schedule"]:
        predict, predict_p90 = fit(features[part["train"]], observed[part["train"]], task["quantiles"])
        others = features[part["test"]]
        predictions.append([float(value) for value in predict(others)])
        if predict_p90 is not None:
            p90.append([float(value) for value in predict_p90(others)])
    return {"name": name, "predictions": predictions, **({"p90": p90} if p90 else {})}


def main():
    task = json.load(sys.stdin)
    for name, fit in PEERS.items():
        if name not in task["only"]:
            continue
        try:
            print(json.dumps(evaluate(name, fit, task)), flush=True)
        except ImportError:
            print(json.dumps({"name": name, "missing": True}), flush=True)


main()
