/** Requests the metrics of one server, with limits of time and bytes. Redirects are not followed. */
import { isIP, type LookupFunction } from 'node:net';
import { Agent, request } from 'undici';
import { Failure } from '../../errors.ts';
import { parseLoad, type ScrapedLoad } from './gauges.ts';
import type { ScrapeTarget } from './scrape-targets.ts';

/** The URL of a server's metrics, and the value of the `Host` header. */
export type ScrapePlace = Pick<ScrapeTarget, 'host'> & { readonly url: URL };

export interface ServerScraper {
  /** Rejects without a complete answer in time, and for an answer without a load. */
  scrape(place: ScrapePlace): Promise<ScrapedLoad>;
  close(): Promise<void>;
}

/** vLLM exposes some 100 KiB. */
const MAX_BYTES = 2_097_152;

export interface ServerScraperOptions {
  readonly timeoutMs: number;
  /** The known addresses of a host. */
  readonly findAddresses: (host: string) => readonly string[];
}

export function createServerScraper({ timeoutMs, findAddresses }: ServerScraperOptions): ServerScraper {
  const agent = new Agent({
    connections: 1,
    pipelining: 1,
    maxResponseSize: MAX_BYTES,
    connect: { timeout: timeoutMs, lookup: createLookup(findAddresses) },
  });
  return {
    async scrape({ url, host }) {
      // Uncompressed, so that the limit of bytes holds for the text that is parsed.
      const headers = { host, accept: 'text/plain', 'accept-encoding': 'identity' };
      const signal = AbortSignal.timeout(timeoutMs);
      const { statusCode, body } = await request(url, { dispatcher: agent, headers, signal });
      if (statusCode !== 200) {
        // A body that is destroyed before it is read emits an error.
        body.on('error', () => {}).destroy();
        throw new Failure('invalid', `Cannot scrape: the answer must be 200, got ${statusCode}`);
      }
      return parseLoad(await readBounded(body));
    },
    close: () => agent.destroy(),
  };
}

/** Returns a lookup for sockets that knows only addresses found before: a resolver may hang. */
function createLookup(findAddresses: (host: string) => readonly string[]): LookupFunction {
  return (host, { all }, answer) => {
    const found = findAddresses(host).map((address) => ({ address, family: isIP(address) }));
    const [first] = found;
    if (first === undefined) return answer(new Error(`no address of "${host}" is known`), []);
    return all === true ? answer(null, found) : answer(null, first.address, first.family);
  };
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_BYTES)
      throw new Failure('invalid', `Cannot scrape: the answer must have at most ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('latin1');
}
