/**
 * Layers 3 and 4 for one target of one slot: mixes what the experts say, and says how far off that may be. All rows of
 * a call step by step, each a loop over arrays: row by row, what surrounds the arithmetic would cost several times it.
 */

import type { TargetModel } from '../model/model.ts';
import type { Said, TargetAnswers } from '../model/slot-evaluator.ts';
import { clampMs } from '../schema/milliseconds.ts';
import type { Target } from '../schema/observation-table.ts';
import type { AskedRows } from './asked-rows.ts';
import type { SavedQuantiles } from './conformal.ts';
import { EXPERT_COUNT, EXPERTS } from './experts.ts';
import { createLiveLevels } from './live-levels.ts';
import { createLiveScatter, type PromisedScatter, promisedMs } from './live-scatter.ts';
import { createSelector, type SavedTrust, type Selector } from './selector.ts';
import type { CorrectedExpert, Place, ServerState } from './server-state.ts';

/** What was predicted for one request, kept until its time is known. */
export interface Foresight {
  readonly logPhysics: number;
  readonly logTrees: number;
  readonly expertLogs: readonly number[];
  /** What the experts say together; residuals are relative to it. */
  readonly mixtureMs: number;
  readonly medianMs: number;
  readonly scatter: PromisedScatter;
}

export interface LiveTarget {
  /** Fills the times of these rows with the statistic that is asked for. */
  answer(said: TargetAnswers, asked: AskedRows, timesMs: Float64Array): void;
  /** Of the one row that is asked. */
  foresee(said: TargetAnswers, asked: AskedRows): Foresight;
  observe(foresight: Foresight, place: Place, observedMs: number): void;
  /** Moves only what is known of the servers, by what this model would have predicted. */
  recall(said: Said, place: Place, observedMs: number): void;
  /** Another model answers from now on; what was learned about servers stays. */
  replaceModel(model: TargetModel): void;
  /** This number means another server from now on. */
  forgetServer(server: number): void;
  /** What it knows but of servers, for a restart. */
  save(): SavedTarget;
  saveServer(server: number): SavedServerTarget;
  restore(saved: SavedTarget): void;
  restoreServer(server: number, saved: SavedServerTarget): void;
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

/** What was never heard of is absent. */
export interface SavedServerTarget {
  readonly trust?: SavedTrust | undefined;
  readonly corrections?: readonly number[] | undefined;
}

export function createLiveTarget(target: Target, { state, podType, initial }: LiveTargetParts): LiveTarget {
  const selector = createSelector();
  const scatter = createLiveScatter(target, initial.calibration);
  const signals = target === 'ttft' ? { physics: 0, trees: 1 } : { physics: 2, trees: 3 };
  const corrected = listCorrected(signals);
  const foreseenMs = new Float64Array(1);
  let levels = createLiveLevels(initial.offsets, podType, state.servers);

  /** Fills the times of these rows with what the experts say together. */
  function mix(said: TargetAnswers, asked: AskedRows, timesMs: Float64Array): void {
    if (asked.isLive) {
      startExperts(said, asked);
      for (const expert of corrected) state.addOffsets(asked, expert);
      selector.mix(asked);
    } else believeTrees(said, asked);
    levels.add(asked);
    multiplyPhysics(said, asked, timesMs);
  }

  return {
    answer(said, asked, timesMs) {
      mix(said, asked, timesMs);
      scatter.toStatistic(asked, timesMs);
    },
    foresee(said, asked) {
      mix(said, asked, foreseenMs);
      const [mixtureMs, server] = [foreseenMs[0]!, asked.servers[0]!];
      const logPhysics = Math.log(said.physicsMs[0]!) + levels.read(server);
      const logTrees = logPhysics + said.treeLogs[0]!;
      const expertLogs = Array.from(asked.expertLogs.subarray(0, EXPERT_COUNT), (log) => logPhysics + log);
      const promise = scatter.promise(mixtureMs, server);
      const medianMs = promisedMs('p50', mixtureMs, promise);
      return { logPhysics, logTrees, expertLogs, mixtureMs, medianMs, scatter: promise };
    },
    observe({ logPhysics, logTrees, expertLogs, mixtureMs, scatter: promise }, place, observedMs) {
      const observedLog = Math.log(observedMs);
      selector.observe(place.server, expertLogs, observedLog);
      scatter.observe(promise, place.server, observedLog - Math.log(mixtureMs));
      state.observe(place, signals.physics, observedLog - logPhysics);
      state.observe(place, signals.trees, observedLog - logTrees);
    },
    recall({ physicsMs, treeLog }, place, observedMs) {
      const residual = Math.log(observedMs) - levels.read(place.server) - Math.log(physicsMs);
      state.observe(place, signals.physics, residual);
      state.observe(place, signals.trees, residual - treeLog);
    },
    replaceModel(next) {
      scatter.replaceCalibration(next.calibration);
      levels = createLiveLevels(next.offsets, podType, state.servers);
    },
    forgetServer(server) {
      levels.forget(server);
      selector.forget(server);
      scatter.ofServers.forget(server);
    },
    save: () => ({ selector: selector.save(), quantiles: scatter.ofSlot.save() }),
    saveServer: (server) => ({ trust: selector.saveServer(server), corrections: scatter.ofServers.saveServer(server) }),
    restore(saved) {
      selector.restore(saved.selector);
      scatter.ofSlot.restore(saved.quantiles);
    },
    restoreServer(server, { trust, corrections }) {
      if (trust !== undefined) selector.restoreServer(server, trust);
      if (corrections !== undefined) scatter.ofServers.restoreServer(server, corrections);
    },
  };
}

function listCorrected(signals: Readonly<Record<'physics' | 'trees', number>>): CorrectedExpert[] {
  return EXPERTS.flatMap(({ base, speed }, position) =>
    speed === undefined ? [] : [{ position, signal: signals[base], speed }],
  );
}

/** What experts multiply physics with, but for their offsets: nothing, or what the trees say. */
function startExperts({ treeLogs }: TargetAnswers, { count, rows, expertLogs }: AskedRows): void {
  for (let n = 0; n < count; n++) {
    const treeLog = treeLogs[rows[n]!]!;
    for (let e = 0; e < EXPERT_COUNT; e++) expertLogs[n * EXPERT_COUNT + e] = TREE_SHARES[e]! * treeLog;
  }
}

const TREE_SHARES = Float64Array.from(EXPERTS, ({ base }) => (base === 'trees' ? 1 : 0));

function believeTrees({ treeLogs }: TargetAnswers, { count, rows, logs }: AskedRows): void {
  for (let n = 0; n < count; n++) logs[n] = treeLogs[rows[n]!]!;
}

function multiplyPhysics({ physicsMs }: TargetAnswers, { count, rows, logs }: AskedRows, timesMs: Float64Array): void {
  for (let n = 0; n < count; n++) {
    const row = rows[n]!;
    timesMs[row] = clampMs(physicsMs[row]! * Math.exp(logs[n]!));
  }
}

/** What nine of ten such requests should stay below, as it was promised. */
export function promisedP90({ mixtureMs, scatter }: Foresight): number {
  return promisedMs('p90', mixtureMs, scatter);
}
