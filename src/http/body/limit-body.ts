/** Refuses a request body that is larger than its endpoint allows (413), and reads all others within the memory budget. */
import type { Context, HonoRequest, MiddlewareHandler } from 'hono';
import { Failure, isFailure } from '../../errors.ts';
import { type BodyBudget, type CountedBody, isCounted } from './body-budget.ts';
import { type BodyParts, type HeldRequest, readIncomingParts, readWebParts } from './incoming-parts.ts';

/** The limit of forms, and of the bodies of endpoints that read named fields. */
export const FORM_MAX_BYTES = 16 * 1024;

/** A handler finds these values in its context. */
export interface BodyEnv {
  Variables: {
    /**
     * Takes the body out of the budget of bodies, and drops its text. For a handler that has parsed it and then waits for long, while
     * it holds only data that another limit bounds. Undefined for a small body, which is not counted.
     */
    releaseBody?: () => void;
    /** A handler that must read the body to authenticate the caller calls this. Undefined for a small body. */
    evictBodyFirst?: () => void;
  };
}

export interface LimitBodyDependencies<Env extends BodyEnv> {
  readonly findMaxBytes: (request: HonoRequest) => number;
  /** The network of the client, by which the budget is divided. */
  readonly readNetwork: (c: Context<Env>) => string;
  readonly budget: BodyBudget;
  /** Node's request; undefined for a request that did not come through a listener. */
  readonly findIncoming: (c: Context<Env>) => HeldRequest | undefined;
}

/**
 * Refuses a larger body: by its declared length, or, if it is chunked, as soon as it is too long. A request with neither a
 * length nor chunks has no body. Nothing is read until the handler requests the body, so that it can refuse a caller first.
 */
export function limitBody<Env extends BodyEnv>({
  findMaxBytes,
  readNetwork,
  budget,
  findIncoming,
}: LimitBodyDependencies<Env>): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { req } = c;
    const maxBytes = findMaxBytes(req);
    const length = isChunked(req) ? undefined : (req.header('content-length') ?? '0');
    checkBodyLength(length, maxBytes);
    const parts = isCounted(length) ? findParts(req, findIncoming(c)) : undefined;
    if (parts === undefined) return await next();
    const open = (giveWay: GiveWay) => budget.open(readNetwork(c), giveWay);
    const limited = limitStream(parts, maxBytes, open);
    try {
      const { method, headers } = req.raw;
      req.raw = new Request(req.url, { method, headers, body: limited.stream, duplex: 'half' });
      c.set('releaseBody', () => {
        req.bodyCache = {};
        limited.release();
      });
      c.set('evictBodyFirst', limited.giveWayFirst);
      lowerLimits.set(req, limited.lowerLimit);
      await next();
    } finally {
      limited.close();
    }
    // A validator may report the error of the stream as a body that is not JSON.
    const refusal = limited.findRefusal();
    if (refusal !== undefined && !(refusal.code === 'too_large' && isAnonymous(c.error))) throw refusal;
  };
}

/** A `Request` of the Fetch API may have no body with these methods. */
const METHODS_WITHOUT_BODY = ['GET', 'HEAD', 'TRACE'];

/** Undefined without a body. `raw.body` begins to read. */
function findParts({ raw }: HonoRequest, incoming: HeldRequest | undefined): BodyParts | undefined {
  if (METHODS_WITHOUT_BODY.includes(raw.method)) return undefined;
  if (incoming !== undefined) return readIncomingParts(incoming);
  return raw.body === null ? undefined : readWebParts(raw.body);
}

/** The caller was not authenticated: the body was read only to look for a token. */
function isAnonymous(error: Error | undefined): boolean {
  return isFailure(error) && error.code === 'unauthenticated';
}

/** Sets the limit of a chunked body for a reader that accepts less than its route. */
const lowerLimits = new WeakMap<HonoRequest, (maxBytes: number) => void>();

/** Throws `too_large` for a longer body: by its declared length or, if it is chunked, once more has arrived. */
function boundRead(request: HonoRequest, maxBytes: number): void {
  if (isChunked(request)) lowerLimits.get(request)?.(maxBytes);
  else checkBodyLength(request.header('content-length'), maxBytes);
}

/** Throws `too_large` when the declared length is too large. */
export function checkBodyLength(contentLength: string | undefined, maxBytes: number): void {
  if (Number(contentLength ?? 0) > maxBytes) throw refuseBody(maxBytes);
}

/** Reads the body, which stays readable for later handlers. Throws `too_large` before it keeps more than the limit. */
export async function readText(request: HonoRequest, maxBytes: number): Promise<string> {
  boundRead(request, maxBytes);
  const text = await request.text();
  if (Buffer.byteLength(text) > maxBytes) throw refuseBody(maxBytes);
  return text;
}

/** Reads the body as bytes. */
export async function readBytes(request: HonoRequest, maxBytes: number): Promise<ArrayBuffer> {
  boundRead(request, maxBytes);
  const bytes = await request.arrayBuffer();
  if (bytes.byteLength > maxBytes) throw refuseBody(maxBytes);
  return bytes;
}

/** Bounds the body of a route whose schema reads named fields. It must run after the check of the caller. */
export const limitFields: MiddlewareHandler = async (c, next) => {
  await readText(c.req, FORM_MAX_BYTES);
  await next();
};

function isChunked(request: HonoRequest): boolean {
  return request.header('transfer-encoding') !== undefined;
}

type GiveWay = (reason: Failure) => void;

function limitStream(parts: BodyParts, maxBytes: number, openBody: (giveWay: GiveWay) => CountedBody) {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let refusal: Failure | undefined;
  let size = 0;
  let limit = maxBytes;
  const body = openBody(refuse);

  /** Only the first reason is reported to the client. */
  function refuse(reason: Failure): void {
    if (refusal !== undefined) return;
    refusal = reason;
    body.close();
    controller.error(reason);
  }

  /** Delivers the body when it is complete: its readers need all of it, and would keep each chunk. */
  async function pull(): Promise<void> {
    for (;;) {
      const part = await parts.next();
      // A dropped body frees the part.
      if (isRefused()) return part && body.add(part);
      if (part === undefined) break;
      size += part.byteLength;
      if (size > limit) return refuse(refuseBody(limit));
      body.add(part);
      await nextTurn(body);
    }
    if (size > 0) controller.enqueue(body.complete());
    controller.close();
  }
  const isRefused = () => refusal !== undefined;
  const start = (own: ReadableStreamDefaultController<Uint8Array>) => {
    controller = own;
  };

  /** Must be called once the request was answered. */
  function close(): void {
    body.close();
    void discardRest(parts, body);
  }
  return {
    stream: new ReadableStream<Uint8Array>({ start, pull }, { highWaterMark: 0 }),
    close,
    lowerLimit: (bytes: number) => {
      limit = Math.min(limit, bytes);
    },
    release: () => body.close(),
    giveWayFirst: () => body.giveWayFirst(),
    findRefusal: () => refusal,
  };
}

/** An unread body must be discarded: cancelling would close the connection before the refusal is written. */
async function discardRest(parts: BodyParts, body: CountedBody): Promise<void> {
  for (;;) {
    // A connection that has ended sends no more.
    const rest = await parts.next().catch(() => undefined);
    if (rest === undefined) return;
    body.add(rest);
    await nextTurn(body);
  }
}

function nextTurn(body: CountedBody): Promise<void> {
  return new Promise((resolve) => body.waitForTurn(resolve));
}

function refuseBody(maxBytes: number): Failure {
  return new Failure('too_large', `Cannot read the request: its body must be at most ${maxBytes} bytes`);
}
