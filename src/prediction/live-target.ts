/** Layers 3 and 4 for one target of one slot: mixes what the experts say, and says how far off that may be. */
import { findBucket, LEVELS, type Statistic, statisticOffset } from './calibration.ts';
import { type AdaptiveQuantiles, createAdaptiveQuantiles, PROMISES, type SavedQuantiles } from './conformal.ts';
import { createLiveLevels } from './live-levels.ts';
import { clampMs } from './milliseconds.ts';
import type { TargetModel } from './model.ts';
import type { Target } from './observation-table.ts';
import { createSelector, EXPERTS, type SavedTrust, type Selector } from './selector.ts';
import { createServerQuantiles } from './server-quantiles.ts';
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
  /** What the experts say together; residuals are relative to it. */
  readonly mixtureMs: number;
  readonly medianMs: number;
  /** How widely times were scattered at this load while learning, as a logarithm. */
  readonly spread: number;
  /** What was promised, in units of the spread: one quantile a promise of `PROMISES`. */
  readonly promised: readonly number[];
  /** How many times had been observed when it was. */
  readonly after: number;
}

export interface LiveTarget {
  readonly selector: Selector;
  readonly quantiles: AdaptiveQuantiles;
  /** What the model says of this place by itself, whatever its servers have shown since. */
  atLevel(ms: number, server: number): number;
  /** What the experts say together; `treeLog` is the logarithm of what the trees multiply physics with. */
  predict(physicsMs: number, treeLog: number, place: Place): number;
  foresee(physicsMs: number, treesMs: number, place: Place): Foresight;
  /** What the experts say as the statistic that is asked for. */
  toStatistic(mixtureMs: number, statistic: Statistic, server: number): number;
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
  readonly servers: readonly SavedServer[];
}

interface SavedServer {
  readonly address: string;
  readonly trust: SavedTrust | undefined;
  readonly corrections: readonly number[] | undefined;
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
  const ofServers = createServerQuantiles();
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
    let sum = 0;
    const weights = selector.weightsOf(place.server);
    for (let e = 0; e < EXPERTS.length; e++) {
      const weight = weights[e]!;
      sum += weight * (weight > LEAST_WEIGHT ? expertLog(e, 0, treeLog, place) : treeLog);
    }
    return sum;
  }

  /** In units of the spread at this load; never below a lesser promise. */
  function quantileAt(promise: number, mixtureMs: number, server: number): number {
    let highest = Number.NEGATIVE_INFINITY;
    for (let p = 0; p <= promise; p++) {
      const ofSlot = quantiles.quantile(PROMISES[p]!) ?? learnedQuantile(p, mixtureMs);
      highest = Math.max(highest, ofSlot + ofServers.correction(server, p));
    }
    return highest;
  }

  /** What the model measured while learning speaks until enough was seen. */
  function learnedQuantile(promise: number, mixtureMs: number): number {
    return statisticOffset(model.calibration, STATISTIC_OF[promise]!, mixtureMs) / spreadAt(model, mixtureMs);
  }

  function saveServers(): SavedServer[] {
    const saved: SavedServer[] = [];
    for (let server = 0; server < state.servers.capacity; server++) {
      const address = state.servers.addressOf(server);
      const [trust, corrections] = [selector.saveServer(server), ofServers.saveServer(server)];
      if (address === undefined || (trust === undefined && corrections === undefined)) continue;
      saved.push({ address: Buffer.from(address).toString(), trust, corrections });
    }
    return saved;
  }

  /** What nearly every row of a call wants. The median learned is the mixture itself, so that often nothing is left to do. */
  function toMedian(mixtureMs: number, server: number): number {
    const quantile = (quantiles.quantile(0.5) ?? 0) + ofServers.correction(server, 0);
    if (quantile === 0) return clampMs(mixtureMs);
    return clampMs(mixtureMs * promiseFactor(0, quantile, spreadAt(model, mixtureMs)));
  }

  function toStatistic(mixtureMs: number, statistic: Statistic, server: number): number {
    if (statistic === 'p50') return toMedian(mixtureMs, server);
    if (statistic === 'mean')
      return clampMs(mixtureMs * Math.exp(statisticOffset(model.calibration, 'mean', mixtureMs)));
    const promise = STATISTIC_OF.indexOf(statistic);
    return clampMs(
      mixtureMs * promiseFactor(promise, quantileAt(promise, mixtureMs, server), spreadAt(model, mixtureMs)),
    );
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
      const mixtureMs = clampMs(Math.exp(logPhysics + mix(logTrees - logPhysics, place)));
      const expertLogs = EXPERTS.map((_, e) => expertLog(e, logPhysics, logTrees, place));
      const promised = PROMISES.map((_, p) => quantileAt(p, mixtureMs, place.server));
      const spread = spreadAt(model, mixtureMs);
      const medianMs = clampMs(mixtureMs * promiseFactor(0, promised[0]!, spread));
      return { logPhysics, logTrees, expertLogs, mixtureMs, medianMs, spread, promised, after: quantiles.count };
    },
    toStatistic,
    observe({ logPhysics, logTrees, expertLogs, mixtureMs, spread, promised, after }, place, observedMs) {
      const observedLog = Math.log(observedMs);
      selector.observe(place.server, expertLogs, observedLog);
      const residual = (observedLog - Math.log(mixtureMs)) / spread;
      quantiles.observe(residual, promised, quantiles.count - after);
      ofServers.observe(place.server, residual, promised);
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
    forgetServer(server) {
      levels.forget(server);
      selector.forget(server);
      ofServers.forget(server);
    },
    save: () => ({ selector: selector.save(), quantiles: quantiles.save(), servers: saveServers() }),
    restore(saved) {
      selector.restore(saved.selector);
      quantiles.restore(saved.quantiles);
      for (const { address, trust, corrections } of saved.servers) {
        const server = state.servers.ensure(Buffer.from(address));
        if (trust !== undefined) selector.restoreServer(server, trust);
        if (corrections !== undefined) ofServers.restoreServer(server, corrections);
      }
    },
  };
}

/** The statistic of each promise. */
const STATISTIC_OF = ['p50', 'p90', 'p95', 'p99'] as const satisfies Statistic[];

/** What nine of ten such requests should stay below, as it was promised. */
export function promisedP90({ mixtureMs, promised, spread }: Foresight): number {
  const promise = STATISTIC_OF.indexOf('p90');
  return clampMs(mixtureMs * promiseFactor(promise, promised[promise]!, spread));
}

/** A lasting bias of more is for the offsets to mend; at an unknown load, the spread alone could move a median by e. */
const MAX_MEDIAN_SHIFT = 0.05;

function promiseFactor(promise: number, quantile: number, spread: number): number {
  const shift = quantile * spread;
  if (promise > 0) return Math.exp(shift);
  const small = Math.max(-MAX_MEDIAN_SHIFT, Math.min(MAX_MEDIAN_SHIFT, shift));
  // e^x to five digits, without the price of it: every row of a call comes by here.
  return 1 + small * (1 + small / 2);
}

/** Half the width of what four of five requests stayed within. */
function spreadAt({ calibration }: TargetModel, predictedMs: number): number {
  const at = findBucket(calibration.edges, predictedMs) * LEVELS.length;
  return Math.max(MIN_SPREAD, (calibration.quantiles[at + HIGH]! - calibration.quantiles[at + LOW]!) / 2);
}
