/**
 * Fills the load of a row from the last scrape of its server; a row is omitted when that scrape is too old
 * (`PREDICTION_SCRAPE_STALE_MS`).
 *
 * Proto3 cannot distinguish a 0 from an absent number. So a row whose waiting, running, KV cache use and tokens in flight are all
 * 0 counts as a row without a load, and gets the scraped one. A gateway with its own counts sends all zeros only for a server that
 * it believes idle, and there the scraped numbers are as good. Rows about an idle server keep their zeros (`idle-rows.ts`).
 */
import type { PredictColumns } from '../schema/columns.ts';
import type { ObservedInput } from '../schema/observation-event.ts';
import { createServerIndex } from '../schema/server-index.ts';
import type { ScrapedLoad } from './gauges.ts';
import { countLoadedRows, createLoadedQuestions, isWithoutLoad } from './idle-rows.ts';

export interface ScrapedServer {
  /** The first name is shown to people. */
  readonly names: readonly string[];
  load: ScrapedLoad | undefined;
  /** When the last successful scrape began, by the monotonic clock; -Infinity before the first. */
  atMs: number;
  /** The failure of the last scrape; undefined if it succeeded, and before the first scrape. */
  failure: ScrapeFailure | undefined;
}

export interface ScrapeFailure {
  readonly reason: string;
  /** True if the server answered, but without a usable load. */
  readonly isAnswered: boolean;
}

/** A server as it is shown to people. */
export interface ScrapedServerView {
  readonly name: string;
  /** The inference engine; undefined before the first successful scrape. */
  readonly kind: string | undefined;
  readonly ageMs: number | undefined;
  /** `fresh`: its numbers are used. `stale`: they are too old. `refused`: stale too, and its last answer could not be parsed or used. */
  readonly state: 'fresh' | 'stale' | 'refused';
  /** Why the last scrape failed. */
  readonly reason: string | undefined;
}

export type FilledInput = { readonly input: ObservedInput } | { readonly staleMs: number };

export interface ScrapedLoads {
  readonly servers: readonly ScrapedServer[];
  /** Replaces the list of servers; loads of servers that stay are kept. */
  replaceServers(namesOfServers: readonly (readonly string[])[]): void;
  /**
   * Fills rows without a load. Rows whose server was last scraped too long ago are omitted, and so are rows about the same
   * servers idle. Returns how many are omitted.
   */
  fillColumns(columns: PredictColumns, nowMs: number): number;
  /** The same for the candidate of a report. */
  fillInput(input: ObservedInput, nowMs: number): FilledInput;
  listServers(nowMs: number): ScrapedServerView[];
  /** Returns how many requests wait or run; undefined unless the numbers are fresh. */
  readUnderWay(server: string, nowMs: number): number | undefined;
}

export function createScrapedLoads(staleAfterMs: number): ScrapedLoads {
  let servers: readonly ScrapedServer[] = [];
  let named = indexServers([]);

  function isStale({ load, atMs }: ScrapedServer, nowMs: number): boolean {
    return load === undefined || nowMs - atMs > staleAfterMs;
  }

  function findServer(name: string): ScrapedServer | undefined {
    const bytes = Buffer.from(name);
    return named.servers[named.find(bytes, 0, bytes.length)];
  }

  function findServers({ count, source, serverIpStart, serverIpLength }: PredictColumns): Int32Array {
    return Int32Array.from({ length: count }, (_, row) =>
      named.find(source, serverIpStart[row]!, serverIpLength[row]!),
    );
  }

  return {
    get servers() {
      return servers;
    },
    replaceServers(namesOfServers) {
      servers = keepLoads(namesOfServers, new Map(listNamed(servers)));
      named = indexServers(listNamed(servers));
    },
    fillColumns(columns, nowMs) {
      const servers = findServers(columns);
      const loadedRows = countLoadedRows(columns, servers);
      const isLoaded = createLoadedQuestions(columns, servers);
      const stale = new Set<number>();
      for (let row = 0; row < columns.count; row++) {
        const server = named.servers[servers[row]!];
        if (server === undefined) continue;
        if (row >= loadedRows) {
          if (stale.has(row - loadedRows)) stale.add(row);
        } else if (!isLoaded(row) && isWithoutLoad(columns, row)) {
          if (isStale(server, nowMs)) stale.add(row);
          else setLoad(columns, row, server.load!);
        }
      }
      // NaN omits the row, because the load of its server is not known.
      for (const row of stale) columns.kvCacheUsage[row] = Number.NaN;
      return stale.size;
    },
    fillInput(input, nowMs) {
      if (input.numRequestWaiting + input.numRequestRunning + input.kvCacheUsage + input.inflightTokens > 0)
        return { input };
      const server = findServer(input.serverIp);
      if (server === undefined) return { input };
      if (isStale(server, nowMs)) return { staleMs: nowMs - server.atMs };
      const { waiting, running, kvCacheUsage, inflightTokens } = server.load!;
      return {
        input: { ...input, numRequestWaiting: waiting, numRequestRunning: running, kvCacheUsage, inflightTokens },
      };
    },
    listServers: (nowMs) => servers.map((server) => describeServer(server, isStale(server, nowMs), nowMs)),
    readUnderWay(name, nowMs) {
      const server = findServer(name);
      return server === undefined || isStale(server, nowMs) ? undefined : server.load!.waiting + server.load!.running;
    },
  };
}

type NamedServers = readonly (readonly [name: string, server: ScrapedServer])[];

interface ServersByName {
  /** Returns the number of the name with these bytes; -1 when no server has it. */
  find(bytes: Uint8Array, start: number, length: number): number;
  /** Servers by the numbers of their names. */
  readonly servers: readonly ScrapedServer[];
}

function indexServers(named: NamedServers): ServersByName {
  const index = createServerIndex(Math.max(1, named.length));
  const servers: ScrapedServer[] = [];
  for (const [name, server] of named) servers[index.ensure(Buffer.from(name))] = server;
  return { find: (bytes, start, length) => index.find(bytes, start, length), servers };
}

function describeServer(
  { names, load, atMs, failure }: ScrapedServer,
  isStale: boolean,
  nowMs: number,
): ScrapedServerView {
  const unused = failure?.isAnswered === true ? 'refused' : 'stale';
  return {
    name: names[0]!,
    kind: load?.kind,
    ageMs: load === undefined ? undefined : nowMs - atMs,
    state: isStale ? unused : 'fresh',
    reason: failure?.reason,
  };
}

function setLoad(columns: PredictColumns, row: number, load: NonNullable<ScrapedServer['load']>): void {
  columns.numRequestWaiting[row] = load.waiting;
  columns.numRequestRunning[row] = load.running;
  columns.kvCacheUsage[row] = load.kvCacheUsage;
  columns.inflightTokens[row] = load.inflightTokens;
}

function listNamed(servers: readonly ScrapedServer[]): NamedServers {
  return servers.flatMap((server) => server.names.map((name) => [name, server] as const));
}

/** Returns the servers with these names, each with the load known under its first name. */
function keepLoads(
  namesOfServers: readonly (readonly string[])[],
  known: ReadonlyMap<string, ScrapedServer>,
): ScrapedServer[] {
  return namesOfServers.map((names) => {
    const { load, atMs = Number.NEGATIVE_INFINITY, failure } = known.get(names[0]!) ?? {};
    return { names, load, atMs, failure };
  });
}
