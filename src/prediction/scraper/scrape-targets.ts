/**
 * The servers to scrape now: the list, read again when its file changes, and its names resolved again now and then. A
 * name of several addresses, as a headless service of Kubernetes has, is several servers.
 */
import { lookup } from 'node:dns/promises';
import { open, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { describeError, Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { World } from '../../world.ts';
import { parseScrapeList, type ScrapeEntry } from './scrape-list.ts';

export interface ScrapeTarget {
  /** Where to ask. */
  readonly url: URL;
  /** The host of the list, for the header of the request. */
  readonly host: string;
  /** What callers may call it; the first is shown. */
  readonly names: readonly string[];
}

export interface TargetList {
  /** The same array until something changed. */
  read(): Promise<readonly ScrapeTarget[]>;
}

export interface TargetListDependencies {
  /** A list of servers, or the path of a file that has one. */
  readonly source: string;
  readonly world: Pick<World, 'monotonicMs'>;
  readonly log: Log;
}

const RESOLVE_EVERY_MS = 30_000;
const MAX_FILE_BYTES = 1_048_576;
/** The most addresses of one name. */
const MAX_ADDRESSES = 256;

export function createTargetList({ source, world, log }: TargetListDependencies): TargetList {
  const isFile = !source.includes('://');
  let entries: readonly ScrapeEntry[] | undefined;
  let version = '';
  let targets: readonly ScrapeTarget[] = [];
  let resolvedAtMs = Number.NEGATIVE_INFINITY;
  /** The list is read at every interval: one line for each reason. */
  let loggedReason = '';
  const resolve = createResolver(log);

  /** True when the list is another one than before. */
  async function readList(): Promise<boolean> {
    const next = isFile ? await readVersion(source) : source;
    if (next === version && entries !== undefined) return false;
    entries = parseScrapeList(isFile ? await readBounded(source) : source);
    version = next;
    return true;
  }

  /** Reads the list again. If it cannot be read, the servers stay as they are. */
  async function readListAgain(): Promise<boolean> {
    try {
      const isChanged = await readList();
      loggedReason = '';
      return isChanged;
    } catch (error) {
      // At the start the operator sees the error; later the former servers are better than none.
      if (entries === undefined) throw error;
      const reason = describeError(error);
      if (reason !== loggedReason) log.error({ err: error }, 'Cannot read the list of servers to scrape again');
      loggedReason = reason;
      return false;
    }
  }

  return {
    async read() {
      const isChanged = await readListAgain();
      const isDue = world.monotonicMs() - resolvedAtMs >= RESOLVE_EVERY_MS;
      if (!isChanged && !isDue) return targets;
      resolvedAtMs = world.monotonicMs();
      const next = dropSharedNames(await resolveAll(entries ?? [], resolve));
      if (describe(next) !== describe(targets)) targets = next;
      return targets;
    },
  };
}

type Resolve = (host: string) => Promise<readonly string[]>;

function createResolver(log: Log): Resolve {
  /** The last addresses of a name: while the resolver fails, servers stay. */
  const known = new Map<string, readonly string[]>();
  return async (host) => {
    try {
      const found = await lookup(host, { all: true });
      known.set(
        host,
        found.slice(0, MAX_ADDRESSES).map(({ address }) => address),
      );
    } catch (err) {
      log.warn({ host, err }, 'Cannot resolve a server to scrape');
    }
    return known.get(host) ?? [];
  };
}

async function resolveAll(entries: readonly ScrapeEntry[], resolve: Resolve): Promise<ScrapeTarget[]> {
  const resolved: ScrapeTarget[] = [];
  // One after the other: a resolver that hangs holds one thread of the process, not all of them.
  for (const entry of entries) {
    const host = entry.url.hostname.replace(/^\[|\]$/g, '');
    // The certificate has the name, so an https server is called by its name.
    if (entry.url.protocol === 'https:' || isIP(host) !== 0) resolved.push(toTarget(entry, host));
    else for (const address of await resolve(host)) resolved.push(toTarget(entry, address));
  }
  return resolved;
}

function toTarget({ name, url }: ScrapeEntry, address: string): ScrapeTarget {
  const at = new URL(url);
  const written = isIP(address) === 6 ? `[${address}]` : address;
  at.hostname = written;
  const port = at.port || (at.protocol === 'https:' ? '443' : '80');
  const names = [`${written}:${port}`, address, `${url.hostname}:${port}`, url.hostname];
  return { url: at, host: url.host, names: name === undefined ? [...new Set(names)] : [name] };
}

/** An address with several ports, or a name with several addresses, stands for none of them. */
function dropSharedNames(targets: readonly ScrapeTarget[]): ScrapeTarget[] {
  const uses = new Map<string, number>();
  for (const { names } of targets) for (const name of names) uses.set(name, (uses.get(name) ?? 0) + 1);
  const unique = targets.map((target) => ({ ...target, names: target.names.filter((name) => uses.get(name) === 1) }));
  return unique.filter(({ names }) => names.length > 0);
}

function describe(targets: readonly ScrapeTarget[]): string {
  return JSON.stringify(targets);
}

async function readVersion(path: string): Promise<string> {
  try {
    const { ino, mtimeMs, size } = await stat(path);
    return `${ino} ${mtimeMs} ${size}`;
  } catch (error) {
    throw refuseFile(path, error);
  }
}

async function readBounded(path: string): Promise<string> {
  try {
    await using file = await open(path);
    const buffer = Buffer.alloc(MAX_FILE_BYTES + 1);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
    if (bytesRead <= MAX_FILE_BYTES) return buffer.toString('utf8', 0, bytesRead);
  } catch (error) {
    throw refuseFile(path, error);
  }
  throw new Failure('invalid', `Cannot read PREDICTION_SCRAPE: the file "${path}" must have at most 1 MiB`);
}

function refuseFile(path: string, error: unknown): Failure {
  return new Failure(
    'invalid',
    `Cannot read PREDICTION_SCRAPE: the file "${path}" must be readable: ${describeError(error)}`,
  );
}
