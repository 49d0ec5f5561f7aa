/**
 * Limits deliveries under way: of the worker, an owner, an origin, an owner at an origin, and a hook.
 *
 * Where owners share slots (of the worker, of an origin) an owner may have at most min(its own cap, the free slots) under way. So one
 * owner that takes as many as possible leaves half to others, and n such owners leave 1/(n + 1) of the cap free (the dynamic threshold
 * of Choudhury and Hahne, 1998, with α = 1). Example: at an origin (16 slots) five owners, one after the other, get 8, 4, 2, 1 and 1.
 * Then the origin is full, and the next free slot goes to an owner with none. Thirteen owners fill a worker.
 *
 * Large bodies share the worker's memory by the same rule, in bytes. Small bodies do not count, so they never wait for large ones.
 *
 * The number of an owner's hook queues in memory is limited too.
 */
import type { OriginLimits } from './origin-breakers.ts';

export interface Caps {
  readonly worker: number;
  readonly owner: number;
  readonly origin: number;
  /** Deliveries of one owner at one origin. */
  readonly ownerAtOrigin: number;
  readonly hook: number;
  /** Bytes of the large bodies under way. The last body may exceed this limit. */
  readonly largeBodyBytes: number;
}

export const CAPS: Caps = {
  worker: 256,
  owner: 32,
  origin: 16,
  ownerAtOrigin: 8,
  hook: 4,
  largeBodyBytes: 33_554_432,
};
/** Limits the hook queues of each owner in memory. An owner may have 50,000, all with slow receivers. */
export interface OwnerRoom {
  /** Hook queues beyond this limit stay due in their rows until others have left. */
  readonly maxOfOwner: number;
  /** The shortest time in memory before a hook queue makes room for others, since it has to be read again when it comes back. */
  readonly minStayMs: number;
}

export const OWNER_ROOM: OwnerRoom = { maxOfOwner: 4000, minStayMs: 5000 };

/** Bodies up to this size are small. The 256 that a worker sends at most at once take 4 MiB. */
export const MAX_SMALL_BODY_BYTES = 16_384;

export interface DeliveryOwner {
  readonly hookId: number;
  readonly origin: string;
  readonly ownerId: string;
}

export interface SizedDelivery extends DeliveryOwner {
  readonly bodyBytes: number;
}

export interface ConcurrencyOptions {
  readonly caps: Caps;
  /** Limits of a breaker, which may be below the caps; read at every choice. */
  readonly limitsOfOrigin?: (origin: string) => OriginLimits;
  readonly allowedOfHook?: (hookId: number) => number;
}

export interface ConcurrencyLimits {
  take(delivery: SizedDelivery): void;
  free(delivery: SizedDelivery): void;
  hasSlotForOwner(ownerId: string): boolean;
  /** Whether the origin has a slot for an owner that has no delivery under way there. */
  hasSlotAtOrigin(origin: string): boolean;
  /** Whether the owner may use one more slot of the origin, provided that one is free. */
  hasShareAtOrigin(origin: string, ownerId: string): boolean;
  hasSlotForHook(hookId: number): boolean;
  hasRoomForBody(delivery: SizedDelivery): boolean;
  readonly sending: number;
}

interface OriginCount {
  total: number;
  readonly byOwner: Map<string, number>;
}

export function createConcurrencyLimits({
  caps,
  limitsOfOrigin,
  allowedOfHook,
}: ConcurrencyOptions): ConcurrencyLimits {
  let { owners, hooks, origins } = createCounts();
  const largeBodies = createByteLimit(caps.largeBodyBytes);
  let sending = 0;

  const change = ({ hookId, origin, ownerId, bodyBytes }: SizedDelivery, by: 1 | -1): void => {
    sending += by;
    if (isLarge(bodyBytes)) largeBodies.change(ownerId, by * bodyBytes);
    add(owners, ownerId, by);
    add(hooks, hookId, by);
    const count = origins.get(origin) ?? { total: 0, byOwner: new Map() };
    count.total += by;
    add(count.byOwner, ownerId, by);
    if (count.total === 0) origins.delete(origin);
    else origins.set(origin, count);
    // New tables: a long-lived Map with many deletions keeps garbage in V8's old generation (`memory/id-table.ts`).
    if (sending === 0) ({ owners, hooks, origins } = createCounts());
  };

  return {
    take: (delivery) => change(delivery, 1),
    free: (delivery) => change(delivery, -1),
    hasSlotForOwner: (ownerId) => (owners.get(ownerId) ?? 0) < fairLimit(caps.owner, caps.worker - sending),
    hasSlotAtOrigin: (origin) => {
      const total = Math.min(caps.origin, limitsOfOrigin?.(origin).total ?? caps.origin);
      return (origins.get(origin)?.total ?? 0) < total;
    },
    hasShareAtOrigin: (origin, ownerId) => {
      const share = Math.min(caps.ownerAtOrigin, limitsOfOrigin?.(origin).ofOneOwner ?? caps.ownerAtOrigin);
      const count = origins.get(origin);
      return count === undefined || (count.byOwner.get(ownerId) ?? 0) < fairLimit(share, caps.origin - count.total);
    },
    hasSlotForHook: (hookId) => (hooks.get(hookId) ?? 0) < Math.min(caps.hook, allowedOfHook?.(hookId) ?? caps.hook),
    hasRoomForBody: ({ ownerId, bodyBytes }) => !isLarge(bodyBytes) || largeBodies.hasRoom(ownerId, bodyBytes),
    get sending() {
      return sending;
    },
  };
}

function createCounts() {
  return {
    owners: new Map<string, number>(),
    hooks: new Map<number, number>(),
    origins: new Map<string, OriginCount>(),
  };
}

/** The share of an owner is at least one, so that the last slot goes to an owner with none. */
function fairLimit(cap: number, free: number): number {
  return Math.min(cap, Math.max(1, free));
}

export function isLarge(bodyBytes: number): boolean {
  return bodyBytes > MAX_SMALL_BODY_BYTES;
}

/** An owner with no large body under way may begin one of any size while any bytes are free, so that each owner gets its turn. */
function createByteLimit(maxBytes: number) {
  const bytesByOwner = new Map<string, number>();
  let total = 0;
  return {
    change: (ownerId: string, by: number): void => {
      total += by;
      add(bytesByOwner, ownerId, by);
    },
    hasRoom: (ownerId: string, bytes: number): boolean => {
      const own = bytesByOwner.get(ownerId) ?? 0;
      const free = maxBytes - total;
      return own === 0 ? free > 0 : own + bytes <= free;
    },
  };
}

function add<Key>(counts: Map<Key, number>, key: Key, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
