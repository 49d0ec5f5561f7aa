/** Fits the physics of a target that has too few rows for trees, and measures its errors on rows that it was not fitted to. */
import { calibrate } from '../model/calibration.ts';
import type { TimeModel } from '../model/model.ts';
import { NO_OFFSETS } from '../model/server-offsets.ts';
import { evaluatePhysics, fitPhysics, type PhysicsModel } from '../physics/physics.ts';
import { certaintyOf } from '../schema/answer-certainty.ts';
import { clampMs } from '../schema/milliseconds.ts';
import {
  type ObservationTable,
  observedTimes,
  type PredictionTarget,
  selectRows,
} from '../schema/observation-table.ts';

/** Every row of `table` must have this target. */
export function trainPhysics(target: PredictionTarget, table: ObservationTable): TimeModel {
  const observed = observedTimes(table, target).slice(0, table.count);
  return {
    rows: table.count,
    offsets: NO_OFFSETS,
    physics: fitRows(target, table),
    forest: undefined,
    treeBaseMs: 0,
    forestShare: 0,
    calibration: calibrate(predictLeftOut(target, table), observed),
    validation: undefined,
  };
}

/** Predicts each row by a fit to all others (leave-one-out): physics has many terms, and follows the noise of few rows. */
function predictLeftOut(target: PredictionTarget, table: ObservationTable): Float64Array {
  const rows = Array.from({ length: table.count }, (_, row) => row);
  return Float64Array.from(rows, (row) => {
    const others = rows.filter((other) => other !== row);
    return predictPhysics(fitRows(target, selectRows(table, others)), selectRows(table, [row]))[0]!;
  });
}

function fitRows(target: PredictionTarget, table: ObservationTable): PhysicsModel {
  const observed = observedTimes(table, target).slice(0, table.count);
  return fitPhysics(target, table, observed, { weights: listCertainties(target, table) });
}

export function predictPhysics(physics: PhysicsModel, table: ObservationTable): Float64Array {
  const predicted = new Float64Array(table.count);
  evaluatePhysics(physics, table, table.count, predicted);
  return predicted.map(clampMs);
}

export function listCertainties(target: PredictionTarget, { outputTokens, count }: ObservationTable): Float64Array {
  return outputTokens.slice(0, count).map((tokens) => certaintyOf(target, tokens));
}
