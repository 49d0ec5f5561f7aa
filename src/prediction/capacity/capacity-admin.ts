/** Answers the capacity form of the console, with the present load of each server. */
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import type { AskCapacity } from './ask-capacity.ts';
import { formSchema, toOrder } from './capacity-query.ts';
import { isFreshReport } from './load-curve.ts';
import type { CapacityFound, CapacityOrder, ServerRoom } from './read-capacity.ts';
import type { LatencyLimits } from './search-rates.ts';

export interface CapacityAdminDependencies {
  readonly world: Pick<World, 'nowMs' | 'monotonicMs'>;
  readonly ask: AskCapacity;
  /** Returns the requests under way at a server by its scraped metrics; undefined without fresh ones. */
  readonly readUnderWay: (server: string) => number | undefined;
}

export interface CapacityPage extends Omit<CapacityFound, 'servers'> {
  readonly limits: LatencyLimits;
  readonly foundAtMs: number;
  readonly servers: readonly ServerHeadroom[];
}

export interface ServerHeadroom {
  readonly name: string;
  /** How many requests the server can have under way while the limits hold. */
  readonly maximum: number;
  /** How many requests it has under way now; undefined when neither scrapes nor reports show it. */
  readonly underWay: number | undefined;
}

/** Answers are kept this long, for reloads of a page and for others who open its link. */
const KEPT_MS = 60_000;
const MAX_KEPT = 32;

interface Kept {
  readonly untilMs: number;
  readonly atMs: number;
  readonly found: CapacityFound;
}

/** `texts` are by field name. Throws `invalid` with the unusable field, and `too_many` while another capacity is being found. */
export type FindCapacityPage = (name: string, texts: Readonly<Record<string, string>>) => Promise<CapacityPage>;

export function createCapacityAdmin({ world, ask, readUnderWay }: CapacityAdminDependencies): FindCapacityPage {
  const kept = new Map<string, Kept>();

  async function find(order: CapacityOrder): Promise<Kept> {
    const key = JSON.stringify(order);
    const known = kept.get(key);
    if (known !== undefined && known.untilMs > world.monotonicMs()) return known;
    const found = await ask(order);
    const answer = { found, atMs: world.nowMs(), untilMs: world.monotonicMs() + KEPT_MS };
    kept.delete(key);
    kept.set(key, answer);
    if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!);
    return answer;
  }

  function findUnderWay({ name, reported }: ServerRoom): number | undefined {
    const isFresh = reported !== undefined && isFreshReport(reported.atMs, world.nowMs());
    return readUnderWay(name) ?? (isFresh ? reported.underWay : undefined);
  }

  return async (name, texts) => {
    const order = readOrder(name, texts);
    const { found, atMs } = await find(order);
    const servers = found.servers.map((server) => ({
      name: server.name,
      maximum: server.maximum,
      underWay: findUnderWay(server),
    }));
    return { ...found, servers, limits: order.limits, foundAtMs: atMs };
  };
}

function readOrder(name: string, texts: Readonly<Record<string, string>>): CapacityOrder {
  const given = Object.entries(texts)
    .map(([field, text]): [string, string] => [field, text.trim()])
    .filter(([, text]) => text !== '');
  const read = formSchema.safeParse({ ...Object.fromEntries(given), model: name });
  if (read.success) return toOrder(read.data);
  const [issue] = read.error.issues;
  const field = issue?.path.join('.') || 'model';
  throw new Failure('invalid', `${field} ${issue?.message}`, { field });
}
