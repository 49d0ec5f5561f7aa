/** Takes a CPU profile of the serving thread, summed by the module that did the work. */
import type { Profiler } from 'node:inspector';

/** Share of the busy time by group. */
export type ProfileGroups = Readonly<Record<string, number>>;

const GROUPS: readonly [group: string, names: RegExp][] = [
  ['profiler', /^node:inspector/],
  ['answer to the socket (system call)', /^(writeUtf8String|writeLatin1String|writeBuffer|writev)$/],
  ['SQLite, reading', /^(all|get|run)$|sqlite-connection/],
  [
    'to and from the writer thread',
    /^(postMessage|receiveMessageOnPort|drainMessagePort)$|src\/database|internal\/worker|event_target/,
  ],
  ['digests, random bytes', /oneShotDigest|internal\/crypto|^(crc32|randomFillSync)$|secret-text|src\/world/],
  ['Hono and the web objects', /node_modules\/(hono|@hono)\/|undici|webstreams/],
  ['oidc-provider and koa', /node_modules\/(oidc-provider|koa|@koa)/],
  ['log and metrics', /node_modules\/(pino|sonic-boom|prom-client)|^(writeSync|writeString)$/],
  ['src/http', /src\/http\//],
  ['src/authorization', /src\/authorization\//],
  ['garbage collection', /^\(garbage collector\)$/],
  ['Node: HTTP, streams, sockets, timers', /^node:|^\(program\)$|runMicrotasks/],
];

export function groupProfile({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): ProfileGroups {
  const nameById = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.url || callFrame.functionName]));
  const shares: Record<string, number> = {};
  let busy = 0;
  for (const [index, id] of samples.entries()) {
    const name = nameById.get(id) ?? '';
    if (name === '(idle)') continue;
    const group = GROUPS.find(([, names]) => names.test(name))?.[0] ?? 'other';
    if (group === 'profiler') continue;
    const micros = timeDeltas[index] ?? 0;
    shares[group] = (shares[group] ?? 0) + micros;
    busy += micros;
  }
  return Object.fromEntries(
    Object.entries(shares)
      .map(([group, micros]): [string, number] => [group, micros / busy])
      .sort((a, b) => b[1] - a[1]),
  );
}
