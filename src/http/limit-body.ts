import type { HonoRequest, MiddlewareHandler } from 'hono';
import { Failure } from '../errors.ts';
import { FORM_MAX_BYTES } from './parser-limits.ts';

/**
 * Refuses a larger body: by its declared length, or, when it comes in chunks, as soon as it is too long. A request that
 * declares neither has none. Nothing is read here, so that a handler can refuse a caller before it reads the body.
 */
export function limitBody(findMaxBytes: (request: HonoRequest) => number): MiddlewareHandler {
  return async (c, next) => {
    const { raw } = c.req;
    const maxBytes = findMaxBytes(c.req);
    if (!isChunked(c.req)) checkBodyLength(c.req.header('content-length'), maxBytes);
    if (!isChunked(c.req) || raw.body === null) return await next();
    const limited = limitStream(raw.body, maxBytes);
    c.req.raw = new Request(c.req.url, {
      method: c.req.method,
      headers: raw.headers,
      body: limited.stream,
      duplex: 'half',
    });
    await next();
    void limited.discard();
    // A validator can take the error of the stream for a body that is not JSON.
    if (limited.isExceeded()) throw refuseBody(maxBytes);
  };
}

/** Throws `too_large` when the body is declared to be. */
export function checkBodyLength(contentLength: string | undefined, maxBytes: number): void {
  if (Number(contentLength ?? 0) > maxBytes) throw refuseBody(maxBytes);
}

/** The body, which stays readable for handlers that come after. Throws `too_large`, if its length is declared unread. */
export async function readText(request: HonoRequest, maxBytes: number): Promise<string> {
  if (!isChunked(request)) checkBodyLength(request.header('content-length'), maxBytes);
  const text = await request.text();
  if (Buffer.byteLength(text) > maxBytes) throw refuseBody(maxBytes);
  return text;
}

/** The same as bytes. */
export async function readBytes(request: HonoRequest, maxBytes: number): Promise<ArrayBuffer> {
  if (!isChunked(request)) checkBodyLength(request.header('content-length'), maxBytes);
  const bytes = await request.arrayBuffer();
  if (bytes.byteLength > maxBytes) throw refuseBody(maxBytes);
  return bytes;
}

/** For routes whose schema reads the body as named fields; behind the check of the caller. */
export const limitFields: MiddlewareHandler = async (c, next) => {
  await readText(c.req, FORM_MAX_BYTES);
  await next();
};

function isChunked(request: HonoRequest): boolean {
  return request.header('transfer-encoding') !== undefined;
}

/** An unread body must be discarded: cancelling would close the connection before the refusal is written. */
function limitStream(source: ReadableStream<Uint8Array>, maxBytes: number) {
  const reader = source.getReader();
  let size = 0;
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        size += value?.byteLength ?? 0;
        if (size > maxBytes) controller.error(refuseBody(maxBytes));
        else if (done) controller.close();
        else controller.enqueue(value);
      },
    },
    { highWaterMark: 0 },
  );
  const discard = async () => {
    for (let isDone = false; !isDone; ) isDone = await reader.read().then(({ done }) => done, isGone);
  };
  return { stream, discard, isExceeded: () => size > maxBytes };
}

/** A connection that has ended sends no more. */
function isGone(): true {
  return true;
}

function refuseBody(maxBytes: number): Failure {
  return new Failure('too_large', `Cannot read the request: its body must be at most ${maxBytes} bytes`);
}
