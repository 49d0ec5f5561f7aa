import type { MiddlewareHandler } from 'hono';
import { Failure } from '../errors.ts';

/**
 * Refuses a larger body: by its declared length, or, when it comes in chunks, as soon as it is too long. A request that
 * declares neither has none.
 */
export function limitBody(maxBytes: number): MiddlewareHandler {
  return async (c, next) => {
    const isChunked = c.req.header('transfer-encoding') !== undefined;
    if (!isChunked) checkBodyLength(c.req.header('content-length'), maxBytes);
    if (isChunked && c.req.raw.body !== null) {
      const body = await readWithin(c.req.raw.body, maxBytes);
      c.req.raw = new Request(c.req.url, { method: c.req.method, headers: c.req.raw.headers, body });
    }
    await next();
  };
}

/** Throws `too_large` when the body is declared to be. */
export function checkBodyLength(contentLength: string | undefined, maxBytes: number): void {
  if (Number(contentLength ?? 0) > maxBytes) throw refuseBody(maxBytes);
}

async function readWithin(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > maxBytes) throw refuseBody(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function refuseBody(maxBytes: number): Failure {
  return new Failure('too_large', `Cannot read the request: its body must be at most ${maxBytes} bytes`);
}
