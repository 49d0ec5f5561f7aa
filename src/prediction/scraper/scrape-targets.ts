/**
 * Decides which servers are scraped now: the list and the addresses of its hosts. A host of several addresses, as a headless
 * service of Kubernetes has, is several servers unless the list gives it one name.
 */
import { open, stat } from 'node:fs/promises';
import { isIP } from 'node:net';
import { describeError, Failure } from '../../errors.ts';
import { hostOf } from '../../ip/ip-address.ts';
import type { Log } from '../../telemetry/log.ts';
import type { HostAddresses } from './host-addresses.ts';
import { parseScrapeList, type ScrapeEntry } from './scrape-list.ts';

export interface ScrapeTarget {
  /** The URL of its metrics; undefined while no address of its host is known. */
  readonly url: URL | undefined;
  /** The host as the list has it, for the `Host` header. */
  readonly host: string;
  /** Callers may send any of these as `server_ip`; the first is shown. */
  readonly names: readonly string[];
}

export interface TargetList {
  /** Returns the same array as before unless something changed. */
  read(): Promise<readonly ScrapeTarget[]>;
}

export interface TargetListDependencies {
  /** A list of servers, or the path of a file with one. */
  readonly source: string;
  readonly addresses: HostAddresses;
  readonly log: Log;
}

const MAX_FILE_BYTES = 1_048_576;

export function createTargetList({ source, addresses, log }: TargetListDependencies): TargetList {
  let entries: readonly ScrapeEntry[] | undefined;
  let version = '';
  let targets: readonly ScrapeTarget[] = [];
  let targetsOfChange = -1;
  /** The list is read at every interval, so a reason is logged once until it changes. */
  let loggedReason = '';

  /** Returns true if the list changed. */
  async function readList(): Promise<boolean> {
    const next = isFile(source) ? await readVersion(source) : source;
    if (next === version && entries !== undefined) return false;
    entries = await readScrapeList(source);
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
      // At the start the operator sees the error; later, the servers of the former list are better than no servers.
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
      const listed = entries ?? [];
      addresses.refresh(listed.flatMap((entry) => findHostToResolve(entry) ?? []));
      if (!isChanged && targetsOfChange === addresses.changes) return targets;
      targetsOfChange = addresses.changes;
      const next = nameApart(joinSame(listed.flatMap((entry) => listTargets(entry, addresses.find))));
      if (describe(next) === describe(targets)) return targets;
      targets = next;
      for (const server of listUnnamed(targets))
        log.warn({ server }, 'Cannot tell a scraped server by its address, which others share; name it: NAME=URL');
      return targets;
    },
  };
}

/** Reads a list of servers, or the file with one. Throws `invalid` if it cannot be read. */
export async function readScrapeList(source: string): Promise<ScrapeEntry[]> {
  return parseScrapeList(isFile(source) ? await readBounded(source) : source);
}

function isFile(source: string): boolean {
  return !source.includes('://');
}

/** A target that still has names which other targets have too. */
interface ListedTarget extends ScrapeTarget {
  /** The URL of its metrics; that of the list while no address of its host is known. */
  readonly place: string;
  /** True if its first name is from the list. */
  readonly isNamed: boolean;
  /** Its names without those of its address; undefined if the list has the address itself, or no address of the host is known. */
  readonly namesOfHost: readonly string[] | undefined;
}

function findHostToResolve({ url }: ScrapeEntry): string | undefined {
  return isIP(hostOf(url)) === 0 ? url.hostname : undefined;
}

function listTargets(entry: ScrapeEntry, find: (host: string) => readonly string[]): ListedTarget[] {
  const host = findHostToResolve(entry);
  if (host === undefined) return [toTarget(entry, hostOf(entry.url))];
  const found = find(host);
  // It stays a target: a row that needs its load is then omitted and not answered as if the server were idle.
  if (found.length === 0) return [{ ...toTarget(entry, host), url: undefined }];
  // With a name, it is one server; with https, the certificate has the host name.
  if (entry.name !== undefined || entry.url.protocol === 'https:') return [toTarget(entry, host)];
  return found.map((address) => toTarget(entry, address));
}

function toTarget({ name, url }: ScrapeEntry, address: string): ListedTarget {
  const at = new URL(url);
  const written = isIP(address) === 6 ? `[${address}]` : address;
  at.hostname = written;
  const port = at.port || (at.protocol === 'https:' ? '443' : '80');
  const isNamed = name !== undefined;
  const namesOfHost = [`${url.hostname}:${port}`, url.hostname];
  const names = isNamed ? [name] : [...new Set([`${written}:${port}`, address, ...namesOfHost])];
  const target = { url: at, host: url.host, names, place: at.href, isNamed };
  return { ...target, namesOfHost: at.host === url.host ? undefined : namesOfHost };
}

/** Joins targets with one URL, such as an address and a host that resolves to it, into one with all of their names. */
function joinSame(targets: readonly ListedTarget[]): ListedTarget[] {
  const byPlace = [...Map.groupBy(targets, ({ place }) => place).values()];
  return byPlace.flatMap(splitHosts).flatMap((same) => {
    const [named, unnamed] = [same.filter(({ isNamed }) => isNamed), same.filter(({ isNamed }) => !isNamed)];
    const aliases = unnamed.flatMap(({ names }) => names);
    const [first, ...others] = named.length > 0 ? named : unnamed.slice(0, 1);
    return [{ ...first!, names: [...new Set([...first!.names, ...aliases])] }, ...others];
  });
}

/** Separates hosts at one address, since a proxy serves each of them by its name. The address then identifies none of them. */
function splitHosts(same: readonly ListedTarget[]): (readonly ListedTarget[])[] {
  const hosts = new Set(same.flatMap(({ host, namesOfHost }) => (namesOfHost === undefined ? [] : [host])));
  if (hosts.size < 2) return [same];
  const apart = same.map((target) => ({ ...target, names: target.namesOfHost ?? target.names }));
  return [...Map.groupBy(apart, ({ host }) => host).values()];
}

/** Removes names that do not identify one server: an address with several ports, a host with several addresses. */
function nameApart(targets: readonly ListedTarget[]): ScrapeTarget[] {
  const given = new Set(targets.flatMap(({ names, isNamed }) => (isNamed ? [names[0]] : [])));
  const uses = new Map<string, number>();
  for (const { names } of targets) for (const name of names) uses.set(name, (uses.get(name) ?? 0) + 1);
  return targets.map(({ url, host, names, place, isNamed }) => {
    const own = names.filter((name, i) => (isNamed && i === 0) || (uses.get(name) === 1 && !given.has(name)));
    return { url, host, names: own.length > 0 ? own : [showPlace(place, host)] };
  });
}

/** Returns what identifies the server to people. Callers cannot send it. It has no query, which may contain a secret. */
function showPlace(place: string, host: string): string {
  const at = new URL(place);
  const shown = `${at.origin}${at.pathname}`;
  return at.host === host ? shown : `${shown} (${host})`;
}

/** Returns targets whose first name is a URL: names of the list, addresses and hosts have no slash. */
function listUnnamed(targets: readonly ScrapeTarget[]): string[] {
  return targets.flatMap(({ names }) => (names[0]!.includes('/') ? [names[0]!] : []));
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
