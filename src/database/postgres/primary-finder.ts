/**
 * Finds the PostgreSQL host that accepts writes among several (failover). A new connection uses the host that was found last,
 * without a search; if that host refuses it or is read-only, the next one queries all hosts at the same time and uses the first
 * that accepts writes.
 */
import pg from 'pg';
import type { DatabaseHost } from './database-url.ts';

export interface PrimaryFinder {
  /** Returns the host found last; without one, it searches. */
  find(): Promise<DatabaseHost>;
  /** Queries all hosts now. */
  search(): Promise<DatabaseHost>;
  /** Must be called when the host refused a connection or its writes. */
  forget(host: DatabaseHost): void;
  /** Returns false only when another host is known to be the primary now. */
  isCurrent(host: DatabaseHost): boolean;
}

/** How long the search waits for a host that does not answer; others answer within milliseconds. */
const HOST_TIMEOUT_MS = 3_000;

export function createPrimaryFinder(hosts: readonly DatabaseHost[], config: pg.ClientConfig): PrimaryFinder {
  let known: DatabaseHost | undefined;
  let searching: Promise<DatabaseHost> | undefined;

  const searchAll = async (): Promise<DatabaseHost> => {
    try {
      known = await Promise.any(hosts.map((host) => askHost(host, config)));
      return known;
    } catch (error) {
      throw chooseReason(hosts, (error as AggregateError).errors as Error[]);
    } finally {
      searching = undefined;
    }
  };
  const search = (): Promise<DatabaseHost> => {
    searching ??= searchAll();
    return searching;
  };
  return {
    find: async () => known ?? (await search()),
    search,
    forget: (host) => {
      if (known === host) known = undefined;
    },
    isCurrent: (host) => known === undefined || (known.host === host.host && known.port === host.port),
  };
}

async function askHost(host: DatabaseHost, config: pg.ClientConfig): Promise<DatabaseHost> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: HOST_TIMEOUT_MS });
  client.on('error', () => {});
  try {
    await connectTo(host, client);
    await checkWritable(client);
    return host;
  } finally {
    void client.end().catch(() => {});
  }
}

/** The driver reads the address from its connection when it connects. */
function connectTo(host: DatabaseHost, client: pg.Client): Promise<pg.Client> {
  Object.assign(client, host);
  return client.connect();
}

/** The error for a standby has the code with which PostgreSQL refuses writes, so that it counts as a lost connection. */
const READ_ONLY = '25006';

/** Rejects unless the session may write: on a standby every transaction is read-only. */
export async function checkWritable(client: Pick<pg.Client, 'query'>): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>('SHOW transaction_read_only');
  if (rows[0]?.transaction_read_only !== 'off')
    throw Object.assign(new Error('it accepts no writes'), { code: READ_ONLY });
}

/** Returns the error of the search: one that other hosts would share, like a wrong password, is reported for all. */
const PASSING = /^(08|53|57|25)|^E[A-Z_]+$/;

function chooseReason(hosts: readonly DatabaseHost[], errors: readonly Error[]): Error {
  const lasting = errors.find((error) => 'code' in error && !PASSING.test(String(error.code)));
  if (lasting !== undefined) return lasting;
  const reasons = hosts.map(({ host, port }, index) => `${host}:${port} ${describe(errors[index])}`);
  return Object.assign(new Error(`no host accepts writes: ${reasons.join('; ')}`), { code: READ_ONLY });
}

function describe(error: Error | undefined): string {
  const code = (error as { code?: string } | undefined)?.code;
  return `(${error?.message || code || 'no answer'})`;
}
