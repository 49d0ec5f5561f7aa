"""Writes the models and answers that the import of foreign models is tested with, in src/prediction/formats/fixtures.

  python3 scripts/make-imported-fixtures.py xgboost    with python3-xgboost 1.7
  python3 scripts/make-imported-fixtures.py lightgbm   with lightgbm 4

Beside each model: rows (on cut points and with missing values too), what the library predicts for them, and what it
says that each feature contributes (before the link; the expectation comes last).
"""
import json
import os
import sys

import numpy

NAMES = ["input_token_length", "prefix_cache_score", "num_request_waiting"]
FOLDER = os.path.join(os.path.dirname(__file__), "../src/prediction/formats/fixtures")


def make_rows(count, random):
    return numpy.column_stack(
        [random.integers(1, 2000, count), random.integers(0, 1001, count) / 1000, random.integers(0, 6, count)]
    ).astype(float)


def make_times(rows, random):
    length, prefix, waiting = rows.T
    return (20 + 0.05 * length * (1 - prefix) + 15 * waiting) * random.uniform(0.9, 1.1, len(rows))


def ask_rows(cuts, random):
    """Rows at random, on the cut points of the trees and just beside them, and with missing values."""
    rows = list(make_rows(12, random))
    for feature, cut in cuts[:12]:
        for value in (cut, numpy.nextafter(cut, -numpy.inf), numpy.nextafter(cut, numpy.inf)):
            row = rows[0].copy()
            row[feature] = value
            rows.append(row)
    for feature in range(len(NAMES)):
        row = rows[1].copy()
        row[feature] = numpy.nan
        rows.append(row)
    return numpy.array(rows)


def write_answers(name, library, rows, predictions, contributions):
    answers = {
        "library": library,
        "rows": [[None if numpy.isnan(value) else float(value) for value in row] for row in rows],
        "predictions": [float(value) for value in predictions],
        "contributions": [[float(f"{value:.9g}") for value in row] for row in contributions],
    }
    with open(os.path.join(FOLDER, f"{name}-predictions.json"), "w") as file:
        json.dump(answers, file, separators=(",", ":"))
        file.write("\n")


def make_xgboost():
    import xgboost

    def train(name, objective, target):
        random = numpy.random.default_rng(7)
        rows = make_rows(300, random)
        times = target(make_times(rows, random))
        data = xgboost.DMatrix(rows, label=times, feature_names=NAMES)
        options = {"objective": objective, "max_depth": 3, "eta": 0.4, "base_score": 3.0}
        booster = xgboost.train(options, data, num_boost_round=5)
        path = os.path.join(FOLDER, f"{name}.json")
        booster.save_model(path)
        with open(path) as file:
            trees = json.load(file)["learner"]["gradient_booster"]["model"]["trees"]
        cuts = [
            (feature, numpy.float32(cut).astype(float))
            for tree in trees
            for feature, cut, left in zip(tree["split_indices"], tree["split_conditions"], tree["left_children"])
            if left != -1
        ]
        asked = ask_rows(cuts, random)
        data = xgboost.DMatrix(asked, feature_names=NAMES)
        answers = booster.predict(data), booster.predict(data, pred_contribs=True)
        write_answers(name, f"xgboost {xgboost.__version__}", asked, *answers)

    train("xgboost-squarederror", "reg:squarederror", lambda times: times)
    train("xgboost-gamma", "reg:gamma", lambda times: times)
    train("xgboost-log-seconds", "reg:squarederror", lambda times: numpy.log(times / 1000))


def list_cuts(node):
    if "split_feature" not in node:
        return []
    below = list_cuts(node["left_child"]) + list_cuts(node["right_child"])
    return [(node["split_feature"], node["threshold"]), *below]


def make_lightgbm():
    import lightgbm

    def train(name, options, target):
        random = numpy.random.default_rng(7)
        rows = make_rows(300, random)
        data = lightgbm.Dataset(rows, target(make_times(rows, random)), feature_name=NAMES)
        options = {"num_leaves": 7, "learning_rate": 0.4, "verbose": -1, "min_data_in_leaf": 10, **options}
        booster = lightgbm.train(options, data, num_boost_round=5)
        booster.save_model(os.path.join(FOLDER, f"{name}.txt"))
        cuts = [cut for tree in booster.dump_model()["tree_info"] for cut in list_cuts(tree["tree_structure"])]
        asked = ask_rows(cuts, random)
        answers = booster.predict(asked), booster.predict(asked, pred_contrib=True)
        write_answers(name, f"lightgbm {lightgbm.__version__}", asked, *answers)

    train("lightgbm-regression", {"objective": "regression"}, lambda times: times)
    train("lightgbm-log1p", {"objective": "regression_l1"}, numpy.log1p)
    train("lightgbm-poisson", {"objective": "poisson", "zero_as_missing": True}, lambda times: times)


{"xgboost": make_xgboost, "lightgbm": make_lightgbm}[sys.argv[1]]()
