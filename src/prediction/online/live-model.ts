/**
 * A target model as it is served: the learned model, and what its servers have shown since. Answers a whole call
 * synchronously; an observed time moves its state in a few microseconds. A new version replaces the learned part
 * between two calls and keeps the rest.
 */

import { findTargetModel, type LatencyModel } from '../model/model.ts';
import { createSlotEvaluator, readSaid, type SlotEvaluator, type TellLevels } from '../model/slot-evaluator.ts';
import { createPredictColumns, MODEL_COLUMNS, type PredictColumns, type PredictedColumns } from '../schema/columns.ts';
import type { MetricColumns, Target } from '../schema/observation-table.ts';
import { normalizePodType, numberOfPodType } from '../schema/pod-type.ts';
import type { ServerIndex } from '../schema/server-index.ts';
import { createAskedRows } from './asked-rows.ts';
import { createLiveLevelsCache, introduceServers, type LiveLevelsCache } from './live-levels.ts';
import { createLiveTarget, type Foresight, type LiveTarget } from './live-target.ts';
import { createRecentRows, type RecentRow } from './recent-rows.ts';
import { restoreLiveModel, type SavedLiveModel, saveLiveModel } from './saved-live-model.ts';
import { createServerState, type Place, type ServerState } from './server-state.ts';

export interface LiveModel {
  readonly model: LatencyModel;
  readonly state: ServerState;
  /** Fills `predicted` for the first `columns.count` rows. */
  predict(columns: PredictColumns, predicted: PredictedColumns): void;
  /** What is predicted now for one row, to be held against what will be observed. */
  foresee(columns: MetricColumns, podType: string, server: Uint8Array): Foreseen;
  observe(foreseen: Foreseen, target: Target, observedMs: number): void;
  replaceModel(model: LatencyModel): void;
  /** The same in steps between which calls may be answered, by the old model until the last. Must be run to its end. */
  prepareSwap(model: LatencyModel): Iterable<void>;
  save(): SavedLiveModel;
  restore(saved: SavedLiveModel): void;
}

export interface Foreseen {
  readonly place: Place;
  readonly podType: string;
  /** In the order of MODEL_COLUMNS. */
  readonly metrics: readonly number[];
  readonly ttft: Foresight;
  readonly tpot: Foresight;
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
  readonly levels: LiveLevelsCache;
  /** Of the servers that are asked about now. */
  readonly tell: TellLevels;
}

export function createLiveModel(initial: LatencyModel): LiveModel {
  const slots = new Map<string, Slot>();
  const state = createServerState({
    maxServers: MAX_SERVERS,
    maxPodTypes: MAX_POD_TYPES,
    onForget(server) {
      for (const { ttft, tpot, levels } of slots.values()) {
        for (const target of [ttft, tpot]) target.forgetServer(server);
        levels.forget(server);
      }
    },
  });
  const podTypes: string[] = [];
  let model = initial;
  let hasObserved = false;
  const recent = createRecentRows();
  /** Evaluators of the model for slots that nobody has asked yet. */
  let ready = new Map<string, SlotEvaluator>();
  const told = createPredictColumns(FIRST_CAPACITY);
  /** By the pod types of the present call, in its order: what answers, and its number in the state. */
  const slotOf: Slot[] = [];
  const numbers: number[] = [];
  let asked = createAskedRows(FIRST_CAPACITY);
  /** Of each row of the present call, -1 when nothing is known of it. */
  let serverOfRow = new Int32Array(FIRST_CAPACITY);
  const askedOnce = createAskedRows(1);
  introduceLevels(initial);

  function findSlot(podType: string, count: number): Slot {
    const key = slotKey(podType);
    const known = slots.get(key);
    if (known === undefined) return openSlot(key, podType, count);
    if (known.evaluator.capacity < count) known.evaluator = createEvaluator(model, podType, count);
    return known;
  }

  /** Pod types that have no models of their own and are not among the first few share the slot of the whole model. */
  function slotKey(podType: string): string {
    const name = normalizePodType(podType);
    return model.slots.has(name) || podTypes.includes(name) ? name : WHOLE;
  }

  function openSlot(key: string, podType: string, count: number): Slot {
    const evaluator = takeReady(key, count) ?? createEvaluator(model, podType, count);
    const parts = { state, podType: normalizePodType(podType) };
    const ttft = createLiveTarget('ttft', { ...parts, initial: evaluator.ttft.model });
    const tpot = createLiveTarget('tpot', { ...parts, initial: evaluator.tpot.model });
    const levels = createLiveLevelsCache(parts.podType, state.servers);
    const slot = { evaluator, ttft, tpot, levels, tell: createTeller(levels) };
    slots.set(key, slot);
    return slot;
  }

  function createTeller(cache: LiveLevelsCache): TellLevels {
    return (levels, into, count) => cache.of(levels).fill(serverOfRow, into, count);
  }

  function numberOf(podType: string): number {
    return numberOfPodType(podTypes, podType);
  }

  function registerPodType(podType: string): void {
    const name = normalizePodType(podType);
    if (!podTypes.includes(name) && podTypes.length + 1 < MAX_POD_TYPES) podTypes.push(name);
  }

  /** Notes which rows of the call this slot answers. */
  function pickRows(slot: Slot, columns: PredictColumns): void {
    const { podTypes, podType } = columns;
    const { rows, servers } = asked;
    let count = 0;
    for (let row = 0; row < columns.count; row++) {
      if (podTypes.length > 1 && slotOf[podType[row]!] !== slot) continue;
      rows[count] = row;
      servers[count] = serverOfRow[row]!;
      count++;
    }
    asked.count = count;
    if (count > 0) asked.podType = numbers[podType[rows[0]!]!]!;
  }

  /** Servers and pod types that the model knows, before the first of their requests. */
  function introduceLevels({ whole, slots: bySlot }: LatencyModel): void {
    for (const { ttft, tpot } of [whole, ...bySlot.values()])
      for (const { offsets: levels } of [ttft, tpot].filter((target) => target !== undefined)) {
        for (const podType of levels.podTypes.keys()) registerPodType(podType);
        introduceServers(levels, state.servers);
      }
  }

  /** Builds what the next model needs, slot by slot, and swaps in the last step. */
  function* prepareSwap(next: LatencyModel): Generator<void, void> {
    const prepared = new Map<string, SlotEvaluator>();
    for (const key of new Set([WHOLE, ...next.slots.keys(), ...slots.keys()])) {
      const capacity = slots.get(key)?.evaluator.capacity ?? FIRST_CAPACITY;
      prepared.set(key, createEvaluator(next, podTypeOf(key), capacity));
      yield;
    }
    model = next;
    ready = prepared;
    introduceLevels(next);
    for (const [key, slot] of slots) {
      // A call since then may have opened it, or made it grow.
      const evaluator =
        takeReady(key, slot.evaluator.capacity) ?? createEvaluator(next, podTypeOf(key), slot.evaluator.capacity);
      slot.evaluator = evaluator;
      slot.levels.clear();
      slot.ttft.replaceModel(evaluator.ttft.model);
      slot.tpot.replaceModel(evaluator.tpot.model);
    }
    recallRecent();
  }

  /** What was built for the slot before it was asked; undefined when it is too small, or taken. */
  function takeReady(key: string, count: number): SlotEvaluator | undefined {
    const evaluator = ready.get(key);
    ready.delete(key);
    return evaluator !== undefined && evaluator.capacity >= count ? evaluator : undefined;
  }

  /** What servers have shown was relative to the old model: it is told again, relative to the new one. */
  function recallRecent(): void {
    state.clear();
    const rows = recent.list();
    for (let start = 0; start < rows.length; start += FIRST_CAPACITY)
      recallRows(rows.slice(start, start + FIRST_CAPACITY));
  }

  /** In their order, whatever their slots, each of which evaluates all of them at once. */
  function recallRows(rows: readonly RecentRow[]): void {
    told.count = rows.length;
    for (const [i, { metrics }] of rows.entries())
      for (const [m, name] of MODEL_COLUMNS.entries()) told[name][i] = metrics[m]!;
    const slotsOfRows = rows.map(({ podType }) => findSlot(podType, rows.length));
    for (const [i, { place }] of rows.entries()) serverOfRow[i] = place.server;
    for (const slot of new Set(slotsOfRows)) slot.evaluator.evaluate(told, slot.tell);
    for (const [i, { target, place, observedMs }] of rows.entries()) {
      const slot = slotsOfRows[i]!;
      slot[target].recall(readSaid(slot.evaluator[target], i), place, observedMs);
    }
  }

  return {
    get model() {
      return model;
    },
    state,
    predict(columns, predicted) {
      // A call has one pod type, or few; of many that callers made up, most share a slot.
      const podTypeCount = Math.max(1, columns.podTypes.length);
      for (let podType = 0; podType < podTypeCount; podType++) {
        const name = columns.podTypes[podType] ?? '';
        slotOf[podType] = findSlot(name, columns.count);
        numbers[podType] = numberOf(name);
      }
      if (asked.rows.length < columns.count) asked = createAskedRows(columns.capacity);
      if (serverOfRow.length < columns.count) serverOfRow = new Int32Array(columns.capacity);
      findServers(state.servers, columns, serverOfRow);
      asked.statistic = model.statistic;
      asked.isLive = hasObserved;
      for (const slot of podTypeCount === 1 ? [slotOf[0]!] : new Set(slotOf.slice(0, podTypeCount))) {
        slot.evaluator.evaluate(columns, slot.tell);
        pickRows(slot, columns);
        slot.ttft.answer(slot.evaluator.ttft, asked, predicted.ttftMs);
        slot.tpot.answer(slot.evaluator.tpot, asked, predicted.tpotMs);
      }
    },
    foresee(columns, podType, server) {
      registerPodType(podType);
      const slot = findSlot(podType, columns.count);
      const place = { server: state.servers.ensure(server), podType: numberOf(podType) };
      serverOfRow[0] = place.server;
      slot.evaluator.evaluate(columns, slot.tell);
      askedOnce.count = 1;
      askedOnce.servers[0] = place.server;
      askedOnce.podType = place.podType;
      return {
        place,
        podType,
        metrics: MODEL_COLUMNS.map((name) => columns[name][0]!),
        ttft: slot.ttft.foresee(slot.evaluator.ttft, askedOnce),
        tpot: slot.tpot.foresee(slot.evaluator.tpot, askedOnce),
      };
    },
    observe(foreseen, target, observedMs) {
      hasObserved = true;
      findSlot(foreseen.podType, 1)[target].observe(foreseen[target], foreseen.place, observedMs);
      const { place, podType, metrics } = foreseen;
      recent.add({ place, podType, metrics, target, observedMs });
    },
    replaceModel(next) {
      for (const _ of prepareSwap(next));
    },
    prepareSwap,
    save: () => saveLiveModel({ podTypes, state, recent, slots }),
    restore(saved) {
      for (const podType of saved.podTypes) registerPodType(podType);
      for (const { podType } of saved.slots) if (!slots.has(podType)) openSlot(podType, podTypeOf(podType), 1);
      restoreLiveModel(saved, { podTypes, state, recent, slots });
      hasObserved ||= saved.slots.length > 0;
    },
  };
}

function findServers(index: ServerIndex, columns: PredictColumns, into: Int32Array): void {
  const { count, source, serverIpStart, serverIpLength } = columns;
  for (let row = 0; row < count; row++) into[row] = index.find(source, serverIpStart[row]!, serverIpLength[row]!);
}

/** The key of the slot that answers for every pod type without one; no pod type can be it. */
const WHOLE = '\0whole';

function podTypeOf(key: string): string {
  return key === WHOLE ? '' : key;
}

function createEvaluator(model: LatencyModel, podType: string, count: number): SlotEvaluator {
  const capacity = Math.max(FIRST_CAPACITY, 2 ** Math.ceil(Math.log2(count)));
  const ttft = findTargetModel(model, podType, 'ttft');
  return createSlotEvaluator(ttft, findTargetModel(model, podType, 'tpot'), capacity);
}
