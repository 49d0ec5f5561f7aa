/** Parses the operator's list of servers to scrape. */
import { isIP } from 'node:net';
import { Failure } from '../../errors.ts';
import { hostOf } from '../../ip/ip-address.ts';
import { isScrapeAddress } from './scrape-addresses.ts';

export interface ScrapeEntry {
  /** Callers send this as `server_ip`; when undefined, they send the address. */
  readonly name: string | undefined;
  readonly url: URL;
}

const MAX_ENTRIES = 4096;
const MAX_NAME_BYTES = 256;

/** `#` begins a comment. Throws `invalid` with the entry that is wrong. */
export function parseScrapeList(text: string): ScrapeEntry[] {
  const entries = text
    .split('\n')
    .flatMap((line) => line.replace(/#.*/, '').split(','))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  if (entries.length > MAX_ENTRIES)
    throw new Failure('invalid', `Cannot read PREDICTION_SCRAPE: it must have at most ${MAX_ENTRIES} servers`);
  const parsed = entries.map(parseEntry);
  const names = parsed.flatMap(({ name }) => name ?? []);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw new Failure('invalid', `Cannot read PREDICTION_SCRAPE: "${twice}" must name one server, got several`);
  return parsed;
}

function parseEntry(entry: string): ScrapeEntry {
  const [, name, address = entry] = /^([^=/]+)=(.*)$/.exec(entry) ?? [];
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isHttp = url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.hash === '';
  if (!isHttp)
    throw new Failure(
      'invalid',
      `Cannot read PREDICTION_SCRAPE: a server must be http://host:port/metrics or NAME=http://host:port/metrics, got ${JSON.stringify(entry.slice(0, 200))}`,
    );
  if (name !== undefined && Buffer.byteLength(name) > MAX_NAME_BYTES)
    throw new Failure('invalid', `Cannot read PREDICTION_SCRAPE: a name must have at most ${MAX_NAME_BYTES} bytes`);
  const host = hostOf(url);
  if (isIP(host) !== 0 && !isScrapeAddress(host))
    throw new Failure(
      'invalid',
      `Cannot read PREDICTION_SCRAPE: a server must not have a link-local, multicast, reserved or metadata address, got "${host}"`,
    );
  return { name: name?.trim(), url };
}
