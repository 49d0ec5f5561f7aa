/** Reserves ranges of row ids for this process in the database, and hands them out (a hi/lo generator). */
import { Failure } from '../errors.ts';
import type { World } from '../world.ts';
import type { Engine } from './engine.ts';
import { createIdMaker, ID_END_MS, type IdMaker, type IdRange } from './ids.ts';
import { type Statement, statement } from './store.ts';

/** The span of a range. Under load, a process reserves the next range when half of this one has passed. */
export const RANGE_MS = 10_000;
/** How often a reservation is tried: a try fails only when another process has reserved the same stripe, so one always makes progress. */
const MAX_TRIES = 1000;

export interface Stripe {
  readonly stripe: number;
  readonly claimed_until_ms: number;
}

/** The table `id_stripes`: the time up to which each stripe is reserved. */
export interface StripeTable {
  /** Returns the stripes, first the one whose reservation ends first. */
  list(): Promise<readonly Stripe[]>;
  /** Returns false when another process has reserved the stripe since it was read. */
  reserve(seen: Stripe, untilMs: number): Promise<boolean>;
}

export interface IdSource {
  makeIds(count: number): Promise<number[]>;
}

export function createIdSource(table: StripeTable, world: Pick<World, 'nowMs' | 'random'>): IdSource {
  let maker: IdMaker | undefined;
  let range: IdRange | undefined;
  let reserving: Promise<void> | undefined;

  const reserveNext = async (): Promise<void> => {
    const next = (range && (await extendRange(table, range, world.nowMs()))) ?? (await reserveFree());
    // Ids keep rising here, above those that were made while this call waited too.
    const fromMs = Math.max(next.fromMs, maker?.unusedFromMs ?? 0);
    range = next;
    maker = createIdMaker({ ...next, fromMs });
  };
  const reserveFree = (): Promise<IdRange> => {
    const fromMs = Math.max(world.nowMs(), maker?.unusedFromMs ?? 0);
    return reserveStripe(table, { fromMs, random: () => world.random() });
  };
  const ensureRange = (): Promise<void> => {
    reserving ??= reserveNext().finally(() => {
      reserving = undefined;
    });
    return reserving;
  };
  const isHalfOver = () => range !== undefined && world.nowMs() > range.untilMs - RANGE_MS / 2;

  return {
    makeIds: async (count) => {
      const ids: number[] = [];
      while (ids.length < count) {
        const run = maker?.makeRun(world.nowMs(), count - ids.length);
        if (run === undefined) await ensureRange();
        else for (let index = 0; index < run.count; index += 1) ids.push(run.firstId + index);
      }
      // Reserved ahead, so that later callers need not wait. A failure here is retried when a stripe is needed.
      if (isHalfOver()) ensureRange().catch(() => {});
      return ids;
    },
  };
}

/** Reserves the same stripe for longer; undefined when another process has reserved it since. */
async function extendRange(table: StripeTable, range: IdRange, nowMs: number): Promise<IdRange | undefined> {
  const { stripe, fromMs } = range;
  const untilMs = findEnd(Math.max(nowMs, range.untilMs));
  const isReserved = await table.reserve({ stripe, claimed_until_ms: range.untilMs }, untilMs);
  return isReserved ? { stripe, fromMs, untilMs } : undefined;
}

function findEnd(beginMs: number): number {
  if (beginMs + RANGE_MS <= ID_END_MS) return beginMs + RANGE_MS;
  throw new Failure('internal', `Cannot make ids: the clock says ${new Date(beginMs).toISOString()}`);
}

export interface ReserveRequest {
  /** Makes no more ids before this time. */
  readonly fromMs: number;
  readonly random: () => number;
}

/** Reserves any stripe that is free at that time, or else the stripe that becomes free first; its ids then carry a later time. */
export async function reserveStripe(table: StripeTable, { fromMs, random }: ReserveRequest): Promise<IdRange> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const stripes = await table.list();
    const free = stripes.filter((stripe) => stripe.claimed_until_ms <= fromMs);
    const seen = free[Math.floor(random() * free.length)] ?? stripes[0];
    if (seen === undefined) break;
    const beginMs = Math.max(fromMs, seen.claimed_until_ms);
    const untilMs = findEnd(beginMs);
    if (await table.reserve(seen, untilMs)) return { stripe: seen.stripe, fromMs: beginMs, untilMs };
  }
  throw new Failure('unavailable', 'Cannot make ids: too many processes claim them', { retryAfterSeconds: 1 });
}

const listStripesSql: Statement<Stripe> = statement(
  'id-stripe-list',
  'SELECT stripe, claimed_until_ms FROM id_stripes ORDER BY claimed_until_ms, stripe',
);
// Compare and set: of two processes that reserve the same stripe, the second finds another time and changes no row.
const reserveStripeSql: Statement<Stripe> = statement(
  'id-stripe-claim',
  `UPDATE id_stripes SET claimed_until_ms = $3 WHERE stripe = $1 AND claimed_until_ms = $2
   RETURNING stripe, claimed_until_ms`,
);

export function createStripeTable(engine: Pick<Engine, 'read' | 'writeAll'>): StripeTable {
  return {
    list: async () => (await engine.read(listStripesSql, [])) as unknown as Stripe[],
    reserve: async (seen, untilMs) => {
      const parameters = [seen.stripe, seen.claimed_until_ms, untilMs];
      const [rows = []] = await engine.writeAll([{ statement: reserveStripeSql, parameters }]);
      return rows.length > 0;
    },
  };
}
