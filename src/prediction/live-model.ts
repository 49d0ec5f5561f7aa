/**
 * A target model as it is served: the learned model, and what its servers have shown since. Answers a whole call
 * synchronously; an observed time moves its state in a few microseconds. A new version replaces the learned part
 * between two calls and keeps the rest.
 */
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns, type PredictedColumns } from './columns.ts';
import { introduceServers } from './live-levels.ts';
import { createLiveTarget, type Foresight, type LiveTarget, type Place, type SavedTarget } from './live-target.ts';
import { findTargetModel, type LatencyModel } from './model.ts';
import type { MetricColumns, Target } from './observation-table.ts';
import { normalizePodType } from './pod-type.ts';
import { createServerState, type SavedServerState, type ServerState } from './server-state.ts';
import { createSlotEvaluator, type SlotEvaluator } from './slot-evaluator.ts';

export interface LiveModel {
  readonly model: LatencyModel;
  readonly state: ServerState;
  /** Fills `predicted` for the first `columns.count` rows. */
  predict(columns: PredictColumns, predicted: PredictedColumns): void;
  /** What is predicted now for one row, to be held against what will be observed. */
  foresee(columns: MetricColumns, podType: string, server: Uint8Array): Foreseen;
  observe(foreseen: Foreseen, target: Target, observedMs: number): void;
  replaceModel(model: LatencyModel): void;
  targetOf(podType: string, target: Target): LiveTarget;
  save(): SavedLiveModel;
  restore(saved: SavedLiveModel): void;
}

export interface Foreseen {
  readonly place: Place;
  readonly podType: string;
  /** In the order of METRIC_COLUMNS. */
  readonly metrics: readonly number[];
  readonly ttft: Foresight;
  readonly tpot: Foresight;
}

export interface SavedLiveModel {
  readonly podTypes: readonly string[];
  readonly servers: SavedServerState;
  readonly recent: readonly SavedRow[];
  readonly slots: readonly { readonly podType: string; readonly ttft: SavedTarget; readonly tpot: SavedTarget }[];
}

/** Most calls have fewer candidates; those that have more make the evaluators grow once. */
const FIRST_CAPACITY = 128;
const MAX_SERVERS = 8192;
/** Pod types beyond these share a number: callers may send any text. */
const MAX_POD_TYPES = 16;

interface Slot {
  evaluator: SlotEvaluator;
  readonly ttft: LiveTarget;
  readonly tpot: LiveTarget;
}

export function createLiveModel(initial: LatencyModel): LiveModel {
  const slots = new Map<string, Slot>();
  const state = createServerState({
    maxServers: MAX_SERVERS,
    maxPodTypes: MAX_POD_TYPES,
    onForget(server) {
      for (const { ttft, tpot } of slots.values()) for (const target of [ttft, tpot]) target.forgetServer(server);
    },
  });
  const podTypes: string[] = [];
  let model = initial;
  let hasObserved = false;
  const recent = createRecentRows();
  const single = createPredictColumns(1);
  single.count = 1;
  introduceLevels(initial);

  function findSlot(podType: string, count: number): Slot {
    const key = slotKey(podType);
    const known = slots.get(key);
    if (known === undefined) return openSlot(key, podType, count);
    if (known.evaluator.capacity < count) known.evaluator = createEvaluator(podType, count);
    return known;
  }

  /** Pod types that have no models of their own and are not among the first few share the slot of the whole model. */
  function slotKey(podType: string): string {
    const name = normalizePodType(podType);
    return model.slots.has(name) || podTypes.includes(name) ? name : WHOLE;
  }

  function openSlot(key: string, podType: string, count: number): Slot {
    const evaluator = createEvaluator(podType, count);
    const parts = { state, podType: normalizePodType(podType) };
    const ttft = createLiveTarget('ttft', { ...parts, initial: evaluator.ttft.model });
    const slot = { evaluator, ttft, tpot: createLiveTarget('tpot', { ...parts, initial: evaluator.tpot.model }) };
    slots.set(key, slot);
    return slot;
  }

  function createEvaluator(podType: string, count: number): SlotEvaluator {
    const capacity = Math.max(FIRST_CAPACITY, 2 ** Math.ceil(Math.log2(count)));
    const ttft = findTargetModel(model, podType, 'ttft');
    return createSlotEvaluator(ttft, findTargetModel(model, podType, 'tpot'), capacity);
  }

  function numberOf(podType: string): number {
    return podTypes.indexOf(normalizePodType(podType)) + 1;
  }

  function registerPodType(podType: string): void {
    const name = normalizePodType(podType);
    if (!podTypes.includes(name) && podTypes.length + 1 < MAX_POD_TYPES) podTypes.push(name);
  }

  function answerRows(slot: Slot, columns: PredictColumns, predicted: PredictedColumns, podType: number): void {
    const { evaluator, ttft, tpot } = slot;
    const isMixed = columns.podTypes.length > 1;
    const place = { server: -1, podType: numberOf(columns.podTypes[podType] ?? '') };
    for (let i = 0; i < columns.count; i++) {
      if (isMixed && columns.podType[i] !== podType) continue;
      let ttftMs = evaluator.ttft.medianMs[i]!;
      let tpotMs = evaluator.tpot.medianMs[i]!;
      place.server = state.servers.find(columns.source, columns.serverIpStart[i]!, columns.serverIpLength[i]!);
      if (hasObserved) {
        ttftMs = ttft.predict(evaluator.ttft.physicsMs[i]!, ttftMs, place);
        tpotMs = tpot.predict(evaluator.tpot.physicsMs[i]!, tpotMs, place);
      } else {
        ttftMs = ttft.atLevel(ttftMs, place.server);
        tpotMs = tpot.atLevel(tpotMs, place.server);
      }
      predicted.ttftMs[i] = ttft.toStatistic(ttftMs, model.statistic);
      predicted.tpotMs[i] = tpot.toStatistic(tpotMs, model.statistic);
    }
  }

  /** Servers and pod types that the model knows, before the first of their requests. */
  function introduceLevels({ whole, slots: bySlot }: LatencyModel): void {
    for (const { ttft, tpot } of [whole, ...bySlot.values()])
      for (const { levels } of [ttft, tpot].filter((target) => target !== undefined)) {
        for (const podType of levels.podTypes.keys()) registerPodType(podType);
        introduceServers(levels, state.servers);
      }
  }

  function saveRow({ place, metrics, podType, target, observedMs }: RecentRow): SavedRow {
    const address = Buffer.from(state.servers.addressOf(place.server) ?? []).toString();
    return { address, metrics, podType, target, observedMs };
  }

  return {
    get model() {
      return model;
    },
    state,
    predict(columns, predicted) {
      // A call has one pod type, or few: with several, each slot evaluates all rows and answers its own.
      let evaluated: SlotEvaluator | undefined;
      for (let podType = 0; podType < Math.max(1, columns.podTypes.length); podType++) {
        const slot = findSlot(columns.podTypes[podType] ?? '', columns.count);
        if (slot.evaluator !== evaluated) slot.evaluator.evaluate(columns);
        evaluated = slot.evaluator;
        answerRows(slot, columns, predicted, podType);
      }
    },
    foresee(columns, podType, server) {
      registerPodType(podType);
      const slot = findSlot(podType, columns.count);
      slot.evaluator.evaluate(columns);
      const place = { server: state.servers.ensure(server), podType: numberOf(podType) };
      const { ttft, tpot } = slot.evaluator;
      return {
        place,
        podType,
        metrics: METRIC_COLUMNS.map((name) => columns[name][0]!),
        ttft: slot.ttft.foresee(ttft.physicsMs[0]!, ttft.medianMs[0]!, place),
        tpot: slot.tpot.foresee(tpot.physicsMs[0]!, tpot.medianMs[0]!, place),
      };
    },
    observe(foreseen, target, observedMs) {
      hasObserved = true;
      findSlot(foreseen.podType, 1)[target].observe(foreseen[target], foreseen.place, observedMs);
      recent.add({ ...foreseen, target, observedMs });
    },
    replaceModel(next) {
      model = next;
      introduceLevels(next);
      for (const [key, slot] of slots) {
        slot.evaluator = createEvaluator(key === WHOLE ? '' : key, slot.evaluator.capacity);
        slot.ttft.replaceModel(slot.evaluator.ttft.model);
        slot.tpot.replaceModel(slot.evaluator.tpot.model);
      }
      // What servers have shown was relative to the old model: it is told again, relative to the new one.
      state.clear();
      for (const { metrics, place, podType, target, observedMs } of recent.list()) {
        const slot = findSlot(podType, 1);
        for (const [m, name] of METRIC_COLUMNS.entries()) single[name][0] = metrics[m]!;
        slot.evaluator.evaluate(single);
        const { physicsMs, medianMs } = slot.evaluator[target];
        slot[target].recall(physicsMs[0]!, medianMs[0]!, place, observedMs);
      }
    },
    targetOf: (podType, target) => findSlot(podType, 1)[target],
    save: () => ({
      podTypes: [...podTypes],
      servers: state.save(),
      recent: recent.list().map(saveRow),
      slots: [...slots].map(([podType, { ttft, tpot }]) => ({ podType, ttft: ttft.save(), tpot: tpot.save() })),
    }),
    restore(saved) {
      for (const podType of saved.podTypes) registerPodType(podType);
      state.restore(saved.servers);
      for (const { podType, ttft, tpot } of saved.slots) {
        const slot = slots.get(podType) ?? openSlot(podType, podType === WHOLE ? '' : podType, 1);
        slot.ttft.restore(ttft);
        slot.tpot.restore(tpot);
      }
      for (const { address, ...row } of saved.recent) {
        const place = { server: state.servers.ensure(Buffer.from(address)), podType: numberOf(row.podType) };
        recent.add({ ...row, place });
      }
      hasObserved ||= saved.slots.length > 0;
    },
  };
}

export interface SavedRow extends Omit<RecentRow, 'place'> {
  readonly address: string;
}

interface RecentRow extends Pick<Foreseen, 'place' | 'podType' | 'metrics'> {
  readonly target: Target;
  readonly observedMs: number;
}

const RECENT_ROWS = 512;

/** The last observed times, oldest first. */
function createRecentRows() {
  const rows: RecentRow[] = [];
  let next = 0;
  return {
    add(row: RecentRow): void {
      rows[next % RECENT_ROWS] = row;
      next++;
    },
    list(): RecentRow[] {
      const first = Math.max(0, next - RECENT_ROWS);
      return Array.from({ length: next - first }, (_, i) => rows[(first + i) % RECENT_ROWS]!);
    },
  };
}

/** The key of the slot that answers for every pod type without one; no pod type can be it. */
const WHOLE = '\0whole';
