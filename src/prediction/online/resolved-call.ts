/** Looks up the servers and slots of a call, and selects the rows that one slot answers. */
import type { PredictColumns } from '../schema/columns.ts';
import type { ServerIndex } from '../schema/server-index.ts';
import type { LiveSlot } from './live-slot.ts';
import type { PodTypeNumbers } from './names/pod-type-numbers.ts';
import type { Batch } from './slot-batch.ts';
import type { SlotTable } from './slot-table.ts';

/** The arrays are reused from call to call. */
export interface ResolvedCall {
  readonly columns: PredictColumns;
  /** The number of each row's server, -1 for an unknown server. */
  readonly servers: Int32Array;
  /** The slot of each pod type of the call, in the call's order. */
  readonly slots: readonly LiveSlot[];
  /** The number of each pod type in the residual tracker, in the same order. */
  readonly podTypes: readonly number[];
}

export interface CallResolver {
  resolve(columns: PredictColumns): ResolvedCall;
}

export interface CallResolverOptions {
  readonly table: SlotTable;
  readonly podTypes: PodTypeNumbers;
  readonly index: ServerIndex;
}

export function createCallResolver({ table, podTypes, index }: CallResolverOptions): CallResolver {
  let servers = new Int32Array(0);
  const slots: LiveSlot[] = [];
  const numbers: number[] = [];
  return {
    resolve(columns) {
      // A call without rows may have no pod type.
      const podTypeCount = Math.max(1, columns.podTypes.length);
      if (slots.length > podTypeCount) slots.length = podTypeCount;
      for (let podType = 0; podType < podTypeCount; podType++) {
        const name = columns.podTypes[podType] ?? '';
        slots[podType] = table.find(name, columns.count);
        numbers[podType] = podTypes.numberOf(name);
      }
      if (servers.length < columns.count) servers = new Int32Array(columns.capacity);
      findServers(index, columns, servers);
      return { columns, servers, slots, podTypes: numbers };
    },
  };
}

function findServers(index: ServerIndex, columns: PredictColumns, into: Int32Array): void {
  const { count, source, serverIpStart, serverIpLength } = columns;
  for (let row = 0; row < count; row++) into[row] = index.find(source, serverIpStart[row]!, serverIpLength[row]!);
}

/** Lists each slot once, since pod types that no model knows share a slot. Most calls have one pod type. */
export function listSlots({ slots }: ResolvedCall): Iterable<LiveSlot> {
  return slots.length === 1 ? slots : new Set(slots);
}

/** Fills the batch with the rows of the call that this slot answers. */
export function selectRows(batch: Batch, call: ResolvedCall, slot: LiveSlot): void {
  const { podType, count: rowCount } = call.columns;
  const { rows, servers } = batch;
  const isShared = call.slots.length > 1;
  let count = 0;
  for (let row = 0; row < rowCount; row++) {
    if (isShared && call.slots[podType[row]!] !== slot) continue;
    rows[count] = row;
    servers[count] = call.servers[row]!;
    count++;
  }
  batch.count = count;
  if (count > 0) batch.podType = call.podTypes[podType[rows[0]!]!]!;
}
