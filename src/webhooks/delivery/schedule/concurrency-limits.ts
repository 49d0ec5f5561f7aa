/**
 * How many deliveries may be sent at the same time: of the worker, an owner, an origin, one owner at an origin, and a hook.
 *
 * Where owners share (the worker, an origin) an owner may take no more than what is still free, besides its own cap. So
 * one owner that takes all it can leaves half to others, and n such owners leave 1/(n + 1) of the cap free (the dynamic
 * threshold of Choudhury and Hahne, 1998, with α = 1). Five owners that come one after the other can fill an origin for a
 * moment (8, 4, 2, 1 and 1), thirteen a worker; the first place that is free again is for an owner that has none.
 */
import type { OriginLimits } from './origin-breakers.ts';

export interface Caps {
  readonly worker: number;
  readonly owner: number;
  readonly origin: number;
  /** Of one owner at one origin. */
  readonly ownerAtOrigin: number;
  readonly hook: number;
}

export const CAPS: Caps = { worker: 256, owner: 32, origin: 16, ownerAtOrigin: 8, hook: 4 };

export interface DeliveryOwner {
  readonly hookId: number;
  readonly origin: string;
  readonly ownerId: string;
}

export interface ConcurrencyOptions {
  readonly caps: Caps;
  /** Below the caps where a breaker demands it; read at every choice. */
  readonly limitsOfOrigin?: (origin: string) => OriginLimits;
  readonly allowedOfHook?: (hookId: number) => number;
}

export interface ConcurrencyLimits {
  take(delivery: DeliveryOwner): void;
  free(delivery: DeliveryOwner): void;
  hasRoomForOwner(ownerId: string): boolean;
  hasRoomAtOrigin(origin: string, ownerId: string): boolean;
  hasRoomForHook(hookId: number): boolean;
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
  const owners = new Map<string, number>();
  const hooks = new Map<number, number>();
  const origins = new Map<string, OriginCount>();
  let sending = 0;

  const change = ({ hookId, origin, ownerId }: DeliveryOwner, by: 1 | -1): void => {
    sending += by;
    add(owners, ownerId, by);
    add(hooks, hookId, by);
    const count = origins.get(origin) ?? { total: 0, byOwner: new Map() };
    count.total += by;
    add(count.byOwner, ownerId, by);
    if (count.total === 0) origins.delete(origin);
    else origins.set(origin, count);
  };

  return {
    take: (delivery) => change(delivery, 1),
    free: (delivery) => change(delivery, -1),
    hasRoomForOwner: (ownerId) => (owners.get(ownerId) ?? 0) < fairLimit(caps.owner, caps.worker - sending),
    hasRoomAtOrigin: (origin, ownerId) => {
      const limits = limitsOfOrigin?.(origin);
      const total = Math.min(caps.origin, limits?.total ?? caps.origin);
      const share = Math.min(caps.ownerAtOrigin, limits?.ofOneOwner ?? caps.ownerAtOrigin);
      const count = origins.get(origin);
      if (count === undefined) return total > 0;
      return count.total < total && (count.byOwner.get(ownerId) ?? 0) < fairLimit(share, caps.origin - count.total);
    },
    hasRoomForHook: (hookId) => (hooks.get(hookId) ?? 0) < Math.min(caps.hook, allowedOfHook?.(hookId) ?? caps.hook),
    get sending() {
      return sending;
    },
  };
}

/** Never below one: the last place is for an owner that has none. */
function fairLimit(cap: number, free: number): number {
  return Math.min(cap, Math.max(1, free));
}

function add<Key>(counts: Map<Key, number>, key: Key, by: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
