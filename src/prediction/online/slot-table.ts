/** Decides which slot answers a pod type, opens it when a call first needs it, and swaps its trained model. */
import type { LatencyModel } from '../model/model.ts';
import type { SlotEvaluator } from '../model/slot-evaluator.ts';
import { normalizePodType } from '../schema/pod-type.ts';
import { registerServers } from './live-offsets.ts';
import {
  createLiveSlot,
  createPodTypeEvaluator,
  createSlotModel,
  FIRST_CAPACITY,
  type LiveSlot,
  type SlotModel,
} from './live-slot.ts';
import type { PodTypeNumbers } from './names/pod-type-numbers.ts';
import type { ResidualTracker } from './residual-tracker.ts';

export interface SlotTable {
  readonly model: LatencyModel;
  /** How often the model was replaced. */
  readonly swaps: number;
  /** The slots by the keys under which they are saved. */
  readonly slots: ReadonlyMap<string, LiveSlot>;
  /** The slot that answers for this pod type, with room for `count` rows. */
  find(podType: string, count: number): LiveSlot;
  /** The key of the slot that answers for this pod type. */
  keyOf(podType: string): string;
  /** The model of a slot, which is opened if it is not open. */
  modelOf(key: string): SlotModel;
  /** Opens the slot of a key. One that answers for no pod type is closed at the next swap. */
  ensure(key: string): void;
  /**
   * Builds the next model's evaluators, slot by slot, calls `onPrepared`, and swaps the model in the last step. Slots that answer for
   * no pod type any more are closed. A caller that stops early leaves the old model in place.
   */
  prepareSwap(next: LatencyModel, onPrepared?: (next: PreparedModel) => Iterable<void>): Generator<void, void>;
  /** Calls the listener with the keys of the slots that a swap closes. Returns a function that removes the listener. */
  onClose(listener: (keys: ReadonlySet<string>) => void): () => void;
}

/** The next model, before it answers. */
export interface PreparedModel {
  readonly keyOf: (podType: string) => string;
  /** Valid only until another server is registered. */
  readonly modelOf: (key: string) => SlotModel;
}

/**
 * The key of the slot that the pooled model answers (trained on the rows of all pod types). It serves every pod type without a
 * slot of its own. Saved states have this key, and no pod type can have this name.
 */
const POOLED = '\0whole';

export interface SlotTableOptions {
  readonly tracker: ResidualTracker;
  readonly podTypes: PodTypeNumbers;
}

export function createSlotTable(initial: LatencyModel, { tracker, podTypes }: SlotTableOptions): SlotTable {
  const { slots, close, onClose } = createOpenSlots();
  let model = initial;
  let swaps = 0;
  /** Evaluators of the model for slots that are not open yet. */
  let ready = new Map<string, SlotEvaluator>();
  registerOffsets(initial, { tracker, podTypes });
  tracker.servers.onForget((server) => {
    for (const slot of slots.values()) slot.forgetServer(server);
  });

  /** Pod types without models of their own, beyond the first few, share the slot of the pooled model. */
  function slotKey(podType: string, served = model): string {
    const name = normalizePodType(podType);
    return served.slots.has(name) || podTypes.isKnown(name) ? name : POOLED;
  }

  function ensureSlot(key: string, count = 1): LiveSlot {
    const slot = slots.get(key) ?? createLiveSlot(takeEvaluator(key, count), { tracker, podType: key });
    slots.set(key, slot);
    return slot;
  }

  /** The prepared evaluator of a slot; a new one if a call has taken it meanwhile or needs a larger one. */
  function takeEvaluator(key: string, count: number): SlotEvaluator {
    const prepared = ready.get(key);
    ready.delete(key);
    return prepared !== undefined && prepared.capacity >= count ? prepared : createPodTypeEvaluator(model, key, count);
  }

  return {
    get model() {
      return model;
    },
    get swaps() {
      return swaps;
    },
    slots,
    keyOf: (podType) => slotKey(podType),
    find(podType, count) {
      const key = slotKey(podType);
      const known = ensureSlot(key, count);
      if (known.capacity < count) known.grow(createPodTypeEvaluator(model, key, count));
      return known;
    },
    modelOf: ensureSlot,
    ensure: (key) => void ensureSlot(key),
    *prepareSwap(next, onPrepared = () => []) {
      const prepared = new Map<string, SlotEvaluator>();
      const kept = [...slots.keys()].filter((key) => slotKey(key, next) === key);
      for (const key of new Set([POOLED, ...next.slots.keys(), ...kept])) {
        prepared.set(key, createPodTypeEvaluator(next, key, slots.get(key)?.capacity ?? FIRST_CAPACITY));
        yield;
      }
      yield* onPrepared(readPrepared(prepared, (podType) => slotKey(podType, next), tracker));
      model = next;
      swaps++;
      ready = prepared;
      registerOffsets(next, { tracker, podTypes });
      close(new Set(slots.keys().filter((key) => slotKey(key) !== key)));
      for (const [key, slot] of slots) slot.replaceModel(takeEvaluator(key, slot.capacity));
    },
    onClose,
  };
}

function readPrepared(
  prepared: ReadonlyMap<string, SlotEvaluator>,
  keyOf: (podType: string) => string,
  { servers }: ResidualTracker,
): PreparedModel {
  return {
    // A pod type may have become known meanwhile.
    keyOf: (podType) => (prepared.has(keyOf(podType)) ? keyOf(podType) : POOLED),
    modelOf: (key) => createSlotModel(prepared.get(key)!, key, servers),
  };
}

/** Keeps the open slots by their keys, and the listeners that are called when slots are closed. */
function createOpenSlots() {
  const slots = new Map<string, LiveSlot>();
  const listeners = new Set<(keys: ReadonlySet<string>) => void>();
  return {
    slots,
    close: (keys: ReadonlySet<string>): void => {
      if (keys.size === 0) return;
      for (const key of keys) slots.delete(key);
      for (const listener of listeners) listener(keys);
    },
    onClose: (listener: (keys: ReadonlySet<string>) => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Registers the servers and pod types that the model knows, before the first of their requests. */
function registerOffsets({ pooled, slots }: LatencyModel, { tracker, podTypes }: SlotTableOptions): void {
  // Trees take the offsets of both targets as inputs. `slotOffsets` still has those of a target that an import replaced.
  for (const { ttft, tpot } of [pooled, ...slots.values()])
    for (const { offsets, slotOffsets } of [ttft, tpot].filter((target) => target !== undefined))
      for (const each of new Set([offsets, ...Object.values(slotOffsets ?? {})])) {
        for (const podType of each.podTypes.keys()) podTypes.register(podType);
        registerServers(each, tracker.servers);
      }
}
