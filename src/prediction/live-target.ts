/** Layers 3 and 4 for one target of one slot: mixes what the experts say, and says how far off that may be. */
import { findBucket, LEVELS, type Statistic, statisticOffset } from './calibration.ts';
import { type AdaptiveQuantiles, createAdaptiveQuantiles, type Promised, type SavedQuantiles } from './conformal.ts';
import { createLiveLevels } from './live-levels.ts';
import { clampMs } from './milliseconds.ts';
import type { TargetModel } from './model.ts';
import type { Target } from './observation-table.ts';
import { createSelector, EXPERTS, type Selector } from './selector.ts';
import type { ServerState } from './server-state.ts';

/** Which server of which pod type, as the server state numbers them. */
export interface Place {
  /** -1 when nothing is known of it. */
  readonly server: number;
  readonly podType: number;
}

/** What was predicted for one request, kept until its time is known. */
export interface Foresight {
  readonly logPhysics: number;
  readonly logTrees: number;
  readonly expertLogs: readonly number[];
  readonly medianMs: number;
  /** How widely times were scattered at this load while learning, as a logarithm. */
  readonly spread: number;
}

export interface LiveTarget {
  readonly selector: Selector;
  readonly quantiles: AdaptiveQuantiles;
  /** What the model says of this place by itself, whatever its servers have shown since. */
  atLevel(ms: number, server: number): number;
  /** The mixture's median; `treeLog` is the logarithm of what the trees multiply physics with. */
  predict(physicsMs: number, treeLog: number, place: Place): number;
  foresee(physicsMs: number, treesMs: number, place: Place): Foresight;
  /** A median as the statistic that is asked for. */
  toStatistic(medianMs: number, statistic: Statistic): number;
  observe(foresight: Foresight, place: Place, observedMs: number): void;
  /** Moves only what is known of the servers, by what this model would have predicted. */
  recall(physicsMs: number, treesMs: number, place: Place, observedMs: number): void;
  /** Another model answers from now on; what was learned about servers stays. */
  replaceModel(model: TargetModel): void;
  /** This number means another server from now on. */
  forgetServer(server: number): void;
  save(): SavedTarget;
  restore(saved: SavedTarget): void;
}

export interface LiveTargetParts {
  readonly state: ServerState;
  /** As `normalizePodType` writes it. */
  readonly podType: string;
  readonly initial: TargetModel;
}

export interface SavedTarget {
  readonly selector: ReturnType<Selector['save']>;
  readonly quantiles: SavedQuantiles;
}

/** What an expert with less says is not worth working out. */
const LEAST_WEIGHT = 1e-4;
const IS_TREES = EXPERTS.map(({ base }) => base === 'trees');
const SPEED_OF = EXPERTS.map(({ speed }) => speed);

/** Times scatter by at least this much: a bucket of equal residuals is luck. */
const MIN_SPREAD = 0.02;
const LOW = LEVELS.indexOf(0.1);
const HIGH = LEVELS.indexOf(0.9);

export function createLiveTarget(target: Target, { state, podType, initial }: LiveTargetParts): LiveTarget {
  const selector = createSelector();
  const quantiles = createAdaptiveQuantiles();
  const physicsSignal = target === 'ttft' ? 0 : 2;
  let model = initial;
  let levels = createLiveLevels(model.levels, podType, state.servers);

  function expertLog(expert: number, logPhysics: number, logTrees: number, place: Place): number {
    const speed = SPEED_OF[expert];
    const isTrees = IS_TREES[expert]!;
    const said = isTrees ? logTrees : logPhysics;
    const signal = isTrees ? physicsSignal + 1 : physicsSignal;
    return speed === undefined ? said : said + state.offset(place.server, place.podType, signal, speed);
  }

  /** The mixture of what the experts multiply physics with, as a logarithm: without logarithms to take, it is cheap. */
  function mix(treeLog: number, place: Place): number {
    const { weights } = selector;
    let sum = 0;
    for (let e = 0; e < EXPERTS.length; e++) {
      const weight = weights[e]!;
      sum += weight * (weight > LEAST_WEIGHT ? expertLog(e, 0, treeLog, place) : treeLog);
    }
    return sum;
  }

  return {
    selector,
    quantiles,
    atLevel: (ms, server) => (levels.isFlat ? ms : clampMs(ms * Math.exp(levels.read(server)))),
    predict: (physicsMs, treeLog, place) =>
      clampMs(physicsMs * Math.exp(levels.read(place.server) + mix(treeLog, place))),
    foresee(physicsMs, treesMs, place) {
      const level = levels.read(place.server);
      const logPhysics = Math.log(physicsMs) + level;
      const logTrees = Math.log(treesMs) + level;
      const medianMs = clampMs(Math.exp(logPhysics + mix(logTrees - logPhysics, place)));
      const expertLogs = EXPERTS.map((_, e) => expertLog(e, logPhysics, logTrees, place));
      return { logPhysics, logTrees, expertLogs, medianMs, spread: spreadAt(model, medianMs) };
    },
    toStatistic(medianMs, statistic) {
      if (statistic === 'p50') return medianMs;
      const adapted = statistic === 'mean' ? undefined : quantiles.quantile(PROMISED_OF[statistic]);
      const offset =
        adapted === undefined
          ? statisticOffset(model.calibration, statistic, medianMs)
          : adapted * spreadAt(model, medianMs);
      return clampMs(medianMs * Math.exp(offset));
    },
    observe({ logPhysics, logTrees, expertLogs, medianMs, spread }, place, observedMs) {
      const observedLog = Math.log(observedMs);
      selector.observe(expertLogs, observedLog);
      quantiles.observe((observedLog - Math.log(medianMs)) / spread);
      state.observe(place.server, place.podType, physicsSignal, observedLog - logPhysics);
      state.observe(place.server, place.podType, physicsSignal + 1, observedLog - logTrees);
    },
    recall(physicsMs, treesMs, place, observedMs) {
      const observedLog = Math.log(observedMs) - levels.read(place.server);
      state.observe(place.server, place.podType, physicsSignal, observedLog - Math.log(physicsMs));
      state.observe(place.server, place.podType, physicsSignal + 1, observedLog - Math.log(treesMs));
    },
    replaceModel(next) {
      model = next;
      levels = createLiveLevels(model.levels, podType, state.servers);
    },
    forgetServer: (server) => levels.forget(server),
    save: () => ({ selector: selector.save(), quantiles: quantiles.save() }),
    restore(saved) {
      selector.restore(saved.selector);
      quantiles.restore(saved.quantiles);
    },
  };
}

const PROMISED_OF: Readonly<Record<Exclude<Statistic, 'mean'>, Promised>> = {
  p50: 0.5,
  p90: 0.9,
  p95: 0.95,
  p99: 0.99,
};

/** Half the width of what four of five requests stayed within. */
function spreadAt({ calibration }: TargetModel, predictedMs: number): number {
  const at = findBucket(calibration.edges, predictedMs) * LEVELS.length;
  return Math.max(MIN_SPREAD, (calibration.quantiles[at + HIGH]! - calibration.quantiles[at + LOW]!) / 2);
}
