"""Trains XGBoost and scikit-learn on the columns that bench/model.ts wrote, one thread, and answers one JSON line each.

Usage: peers.py FOLDER ROWS TEST_ROWS FEATURES TREES. A library that is not installed is named on a line of its own.
"""

import json
import os
import statistics
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

folder = sys.argv[1]
rows, test_rows, features, trees = (int(text) for text in sys.argv[2:6])


def report(name, make, predict_small):
    import numpy as np

    values = np.fromfile(f"{folder}/values.f32", dtype=np.float32).reshape(features, rows + test_rows).T.copy()
    target = np.fromfile(f"{folder}/target.f64")
    train_x, train_y = values[:rows], target[:rows]
    test_x, test_y = values[rows:], target[rows:]
    cpu = []
    for _ in range(4):
        model = make()
        start = time.process_time()
        model.fit(train_x, train_y)
        cpu.append(time.process_time() - start)
    rmse = float(np.sqrt(np.mean((model.predict(test_x) - test_y) ** 2)))
    small = train_x[:64].copy()
    spent = []
    for _ in range(60):
        start = time.process_time()
        for _ in range(5):
            predict_small(model, small)
        spent.append((time.process_time() - start) / 5)
    line = {"name": name, "trainSeconds": statistics.median(cpu[1:]), "rmse": rmse}
    # Two targets: two models are asked.
    line["rowsPerSecond"] = 64 / (2 * statistics.median(spent[10:]))
    print(json.dumps(line), flush=True)


try:
    import xgboost

    report(
        f"XGBoost {xgboost.__version__} hist",
        lambda: xgboost.XGBRegressor(
            n_estimators=trees, max_depth=6, learning_rate=0.2, tree_method="hist", n_jobs=1
        ),
        lambda model, values: model.get_booster().inplace_predict(values),
    )
except ImportError:
    print(json.dumps({"missing": "xgboost (Debian: python3-xgboost)"}), flush=True)

try:
    import sklearn
    from sklearn.ensemble import HistGradientBoostingRegressor

    report(
        f"scikit-learn {sklearn.__version__}",
        lambda: HistGradientBoostingRegressor(
            max_iter=trees, learning_rate=0.2, max_leaf_nodes=64, max_depth=6, early_stopping=False
        ),
        lambda model, values: model.predict(values),
    )
except ImportError:
    print(json.dumps({"missing": "scikit-learn (Debian: python3-sklearn)"}), flush=True)
