/** Resolves the host names of scraped servers in the background (DNS). While the resolver fails, the last addresses stay. */
import { lookup } from 'node:dns/promises';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { isScrapeAddress } from './scrape-addresses.ts';

/** Looks up all addresses of a name. */
export type LookUp = (host: string) => Promise<readonly string[]>;

export interface HostAddresses {
  /** The addresses of the last lookup that succeeded; empty before the first. */
  readonly find: (host: string) => readonly string[];
  /** Increases whenever an answer of `find` changes. */
  readonly changes: number;
  /** Starts to look up the names that are due, unless a lookup is under way. */
  refresh(hosts: readonly string[]): void;
}

export interface HostAddressDependencies {
  readonly world: Pick<World, 'monotonicMs'>;
  readonly log: Log;
  readonly lookUp?: LookUp;
}

const RESOLVE_EVERY_MS = 30_000;
/** At most this many addresses of one name are used. */
const MAX_ADDRESSES = 256;

export function createHostAddresses({ world, log, lookUp = lookUpAll }: HostAddressDependencies): HostAddresses {
  const known = new Map<string, { readonly addresses: readonly string[]; readonly askedAtMs: number }>();
  let changes = 0;
  let isUnderWay = false;

  const find = (host: string): readonly string[] => known.get(host)?.addresses ?? [];

  async function resolve(host: string): Promise<void> {
    const before = find(host);
    const found = await lookUpAllowed(host, { lookUp, log });
    const addresses = found ?? before;
    known.set(host, { addresses, askedAtMs: world.monotonicMs() });
    if (addresses.join() !== before.join()) changes += 1;
  }

  async function resolveAll(hosts: readonly string[]): Promise<void> {
    isUnderWay = true;
    // One after the other, so that a resolver that hangs blocks one thread of the pool and not all.
    for (const host of hosts) await resolve(host);
    isUnderWay = false;
  }

  return {
    find,
    get changes() {
      return changes;
    },
    refresh(hosts) {
      if (isUnderWay) return;
      const listed = new Set(hosts);
      for (const host of known.keys()) if (!listed.has(host)) known.delete(host);
      const dueMs = world.monotonicMs() - RESOLVE_EVERY_MS;
      const due = [...listed].filter((host) => (known.get(host)?.askedAtMs ?? Number.NEGATIVE_INFINITY) <= dueMs);
      if (due.length > 0) void resolveAll(due);
    },
  };
}

/** Undefined when the resolver fails. Sorted, because name servers rotate the order of addresses. */
async function lookUpAllowed(
  host: string,
  { lookUp, log }: { readonly lookUp: LookUp; readonly log: Log },
): Promise<readonly string[] | undefined> {
  try {
    const found = await lookUp(host);
    const refused = found.filter((address) => !isScrapeAddress(address));
    if (refused.length > 0) log.warn({ host, refused }, 'A server to scrape has addresses that must not be scraped');
    return found.filter(isScrapeAddress).sort().slice(0, MAX_ADDRESSES);
  } catch (err) {
    log.warn({ host, err }, 'Cannot resolve a server to scrape');
    return undefined;
  }
}

const lookUpAll: LookUp = async (host) => (await lookup(host, { all: true })).map(({ address }) => address);
