/**
 * Reads the names that the operator wrote into the hosts file of this machine. The system's resolver would read them too, but
 * it blocks a thread for every name, and its time limit cannot be set.
 */
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';

const DEFAULT_PATH = '/etc/hosts';
const MAX_BYTES = 1024 * 1024;

export interface HostsFile {
  /** The addresses of a name, IPv4 first; empty if the file does not have the name. */
  find(name: string): readonly string[];
}

/** Reads the file again after it has changed. */
export function createHostsFile(path: string = DEFAULT_PATH): HostsFile {
  let version = '';
  let addressesByName: ReadonlyMap<string, readonly string[]> = new Map();
  return {
    find: (name) => {
      const present = readVersion(path);
      if (present !== version) addressesByName = present === '' ? new Map() : parseHosts(readFileSync(path, 'utf8'));
      version = present;
      return addressesByName.get(name.toLowerCase()) ?? [];
    },
  };
}

/** Changes when the file does; empty when there is no file, or one of more than 1 MiB. */
function readVersion(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() && stat.size <= MAX_BYTES ? `${stat.ino} ${stat.mtimeMs} ${stat.size}` : '';
}

export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names.map((given) => given.toLowerCase().replace(/\.$/, ''))) {
      const addresses = found.get(name);
      if (addresses === undefined) found.set(name, [address]);
      else addresses.push(address);
    }
  }
  for (const addresses of found.values()) addresses.sort((one, other) => isIP(one) - isIP(other));
  return found;
}
