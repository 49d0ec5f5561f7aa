/**
 * Sends a page again when its content changes, as server-sent events. Each stream renders its page every 3 seconds, so the number
 * of streams is limited, for each person and in total. The event `end` tells a browser not to reconnect: the person has signed out
 * or has opened more pages, or the page is gone. Browsers reconnect a stream that ends without it.
 */
import { createHash } from 'node:crypto';
import type { Worker } from '../workers/worker.ts';
import type { World } from '../world.ts';

const LOOK_EVERY_MS = 3000;
/** Proxies close idle connections. */
const HEARTBEAT_MS = 15_000;
/** Over HTTP/1.1 a browser opens six connections to a host, and needs some for its pages. */
const MAX_OF_PERSON = 4;
const MAX_STREAMS = 200;
/** A stream is closed when this many chunks are unread; the browser reconnects and gets the page as it is then. */
const MAX_WAITING_CHUNKS = 4;

/** The reason for which a stream is aborted when its person opens another page. */
const REPLACED = 'replaced';

/** Returns the current content of the page; undefined when it may no longer be shown. */
export type RenderAgain = () => Promise<string | undefined>;

export interface LiveStreams extends Worker {
  open(personId: string, render: RenderAgain): Response;
}

interface Stream {
  readonly personId: string;
  readonly ending: AbortController;
}

export interface LiveStreamDependencies {
  readonly world: Pick<World, 'sleep' | 'monotonicMs'>;
  readonly lookEveryMs?: number;
}

export function createLiveStreams({ world, lookEveryMs = LOOK_EVERY_MS }: LiveStreamDependencies): LiveStreams {
  const streams = new Set<Stream>();
  let isStopped = false;
  return {
    name: 'live-pages',
    start() {},
    async stop() {
      isStopped = true;
      for (const { ending } of streams) ending.abort();
    },
    open(personId, render) {
      const own = [...streams].filter((stream) => stream.personId === personId);
      // The oldest stream ends: the person most likely looks at the page that was opened last.
      if (own.length >= MAX_OF_PERSON) endStream(streams, own[0]!, REPLACED);
      // 204 tells the browser not to reconnect; the script of the page asks again later.
      if (isStopped || streams.size >= MAX_STREAMS) return new Response(null, { status: 204 });
      const stream: Stream = { personId, ending: new AbortController() };
      streams.add(stream);
      const body = new ReadableStream<Uint8Array>(
        {
          start: (controller) => {
            void followPage(controller, { render, signal: stream.ending.signal, world, lookEveryMs }).finally(() =>
              streams.delete(stream),
            );
          },
          cancel: () => endStream(streams, stream),
        },
        { highWaterMark: MAX_WAITING_CHUNKS },
      );
      return new Response(body, { headers: HEADERS });
    },
  };
}

const END = writeEvent('end', '');

const HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  // Otherwise the shutdown of the server would wait for the idle connection.
  Connection: 'close',
  // Otherwise nginx would buffer the events.
  'X-Accel-Buffering': 'no',
};

function endStream(streams: Set<Stream>, stream: Stream, reason?: typeof REPLACED): void {
  streams.delete(stream);
  stream.ending.abort(reason);
}

/** Tells the browser of a signed-out person not to reconnect. */
export function respondEnd(): Response {
  return new Response(END, { headers: HEADERS });
}

interface Following {
  readonly render: RenderAgain;
  readonly signal: AbortSignal;
  readonly world: LiveStreamDependencies['world'];
  readonly lookEveryMs: number;
}

async function followPage(
  controller: ReadableStreamDefaultController<Uint8Array>,
  { render, signal, world, lookEveryMs }: Following,
): Promise<void> {
  const send = (text: string) => controller.enqueue(Buffer.from(text));
  let shown = '';
  let sentMs = world.monotonicMs();
  let isOver = false;
  try {
    send('retry: 5000\n\n');
    while (!signal.aborted && (controller.desiredSize ?? 0) > 0) {
      const content = await render();
      isOver = content === undefined;
      if (content === undefined) break;
      const digest = createHash('sha256').update(content).digest('base64');
      const nowMs = world.monotonicMs();
      const isChanged = digest !== shown;
      if (isChanged) send(writeEvent('page', content));
      else if (nowMs - sentMs >= HEARTBEAT_MS) send(': still here\n\n');
      if (isChanged || nowMs - sentMs >= HEARTBEAT_MS) sentMs = nowMs;
      shown = digest;
      await world.sleep(lookEveryMs, signal).catch(() => {});
    }
    if (isOver || signal.reason === REPLACED) send(END);
    controller.close();
  } catch {
    // The reader has left, or the page cannot be rendered now: the browser reconnects.
    closeQuietly(controller);
  }
}

function closeQuietly(controller: ReadableStreamDefaultController<Uint8Array>): void {
  try {
    controller.close();
  } catch {
    // The reader has already closed it.
  }
}

/** A lone CR ends a line too, and one in the response of a receiver could begin another event. */
function writeEvent(name: string, data: string): string {
  return `event: ${name}\n${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}`)
    .join('\n')}\n\n`;
}
