/** Claims ids for this process in the database, a few seconds ahead, and hands them out. */
import { Failure } from '../errors.ts';
import type { World } from '../world.ts';
import type { Engine } from './engine.ts';
import { type Claim, createIdMaker, ID_END_MS, type IdMaker } from './ids.ts';
import { type Statement, statement } from './store.ts';

/** How far ahead a claim reaches. A process that is under load claims again when half of it is over. */
export const CLAIM_MS = 10_000;
/** Every claim that is lost to another process was won by that one. */
const MAX_TRIES = 1000;

export interface Stripe {
  readonly stripe: number;
  readonly claimed_until_ms: number;
}

/** The table of claims, as a process sees it. */
export interface StripeTable {
  /** Those that have been claimed least far first. */
  list(): Promise<readonly Stripe[]>;
  /** False when it is not claimed until `seen` any more. */
  claim(seen: Stripe, untilMs: number): Promise<boolean>;
}

export interface IdSource {
  makeIds(count: number): Promise<number[]>;
}

export function createIdSource(table: StripeTable, world: Pick<World, 'nowMs' | 'random'>): IdSource {
  let maker: IdMaker | undefined;
  let claim: Claim | undefined;
  let claiming: Promise<void> | undefined;

  const takeClaim = async (): Promise<void> => {
    const next = (claim && (await extendClaim(table, claim, world.nowMs()))) ?? (await claimFree());
    // Ids rise here, also above those that were made while this waited.
    const fromMs = Math.max(next.fromMs, maker?.unusedFromMs ?? 0);
    claim = next;
    maker = createIdMaker({ ...next, fromMs });
  };
  const claimFree = (): Promise<Claim> => {
    const fromMs = Math.max(world.nowMs(), maker?.unusedFromMs ?? 0);
    return claimStripe(table, { fromMs, random: () => world.random() });
  };
  const ensureClaim = (): Promise<void> => {
    claiming ??= takeClaim().finally(() => {
      claiming = undefined;
    });
    return claiming;
  };
  const isHalfOver = () => claim !== undefined && world.nowMs() > claim.untilMs - CLAIM_MS / 2;

  return {
    makeIds: async (count) => {
      const ids: number[] = [];
      while (ids.length < count) {
        const run = maker?.makeRun(world.nowMs(), count - ids.length);
        if (run === undefined) await ensureClaim();
        else for (let index = 0; index < run.count; index += 1) ids.push(run.firstId + index);
      }
      // Reserved ahead, so that later callers need not wait. A failure here is retried when a stripe is needed.
      if (isHalfOver()) ensureClaim().catch(() => {});
      return ids;
    },
  };
}

/** The same stripe for longer; undefined when another process has claimed it since. */
async function extendClaim(table: StripeTable, claim: Claim, nowMs: number): Promise<Claim | undefined> {
  const { stripe, fromMs } = claim;
  const untilMs = findEnd(Math.max(nowMs, claim.untilMs));
  const isClaimed = await table.claim({ stripe, claimed_until_ms: claim.untilMs }, untilMs);
  return isClaimed ? { stripe, fromMs, untilMs } : undefined;
}

function findEnd(beginMs: number): number {
  if (beginMs + CLAIM_MS <= ID_END_MS) return beginMs + CLAIM_MS;
  throw new Failure('internal', `Cannot make ids: the clock says ${new Date(beginMs).toISOString()}`);
}

export interface ClaimRequest {
  /** No id before this time. */
  readonly fromMs: number;
  readonly random: () => number;
}

/** Any stripe that is free at that time, or else the stripe that becomes free first; its ids then carry a later time. */
export async function claimStripe(table: StripeTable, { fromMs, random }: ClaimRequest): Promise<Claim> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const stripes = await table.list();
    const free = stripes.filter((stripe) => stripe.claimed_until_ms <= fromMs);
    const seen = free[Math.floor(random() * free.length)] ?? stripes[0];
    if (seen === undefined) break;
    const beginMs = Math.max(fromMs, seen.claimed_until_ms);
    const untilMs = findEnd(beginMs);
    if (await table.claim(seen, untilMs)) return { stripe: seen.stripe, fromMs: beginMs, untilMs };
  }
  throw new Failure('unavailable', 'Cannot make ids: too many processes claim them', { retryAfterSeconds: 1 });
}

const listStripesSql: Statement<Stripe> = statement(
  'id_stripe_list',
  'SELECT stripe, claimed_until_ms FROM id_stripes ORDER BY claimed_until_ms, stripe',
);
// What was seen is named: of two that claim the same, one comes too late.
const claimOneSql: Statement<Stripe> = statement(
  'id_stripe_claim',
  `UPDATE id_stripes SET claimed_until_ms = $3 WHERE stripe = $1 AND claimed_until_ms = $2
   RETURNING stripe, claimed_until_ms`,
);

export function createStripeTable(engine: Pick<Engine, 'read' | 'writeAll'>): StripeTable {
  return {
    list: async () => (await engine.read(listStripesSql, [])) as unknown as Stripe[],
    claim: async (seen, untilMs) => {
      const parameters = [seen.stripe, seen.claimed_until_ms, untilMs];
      const [rows = []] = await engine.writeAll([{ statement: claimOneSql, parameters }]);
      return rows.length > 0;
    },
  };
}
