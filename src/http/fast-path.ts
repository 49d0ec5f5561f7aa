/**
 * Answers plain requests to frequent endpoints without Hono, which would cost more than the answer. It needs no Request, Response,
 * Headers or router (docs/decisions/0006-fast-path.md). Nearly all requests are plain. It leaves the others to Hono: bodies in
 * chunks, headers that come twice, other methods, paths in an unusual spelling.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Failure } from '../errors.ts';
import type { Log } from '../telemetry/log.ts';
import { type BodyBudget, type CountedBody, isCounted } from './body/body-budget.ts';
import { checkBodyLength, FORM_MAX_BYTES } from './body/limit-body.ts';
import { CountedMessage } from './chunk-limit.ts';
import { networkOf } from './client-address.ts';
import { CORS_HEADERS } from './cors.ts';
import { type Call, type Endpoint, type EndpointRequest, NOT_STORED, type Reply, readForm } from './endpoint.ts';
import { createEndpointFinder, type FoundEndpoint, type MountedEndpoint } from './endpoint-path.ts';
import { refuseCutOff, replyToError } from './failure-response.ts';

import type { RequestObserver } from './observe-requests.ts';
import { checkQuery } from './parser-limits.ts';

export interface FastPathDependencies {
  readonly endpoints: readonly MountedEndpoint[];
  readonly observer: RequestObserver;
  readonly log: Log;
  readonly maxBodyBytes: number;
  readonly bodyBudget: BodyBudget;
}

/** Answers, or returns false and leaves the request as it is. */
export type FastPath = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

export function createFastPath(dependencies: FastPathDependencies): FastPath {
  const findEndpoint = createEndpointFinder(dependencies.endpoints);
  return (incoming, outgoing) => {
    const { method = '', url = '' } = incoming;
    const queryAt = url.indexOf('?');
    const path = queryAt === -1 ? url : url.slice(0, queryAt);
    const found = findEndpoint(method, path);
    if (found === undefined || !isPlain(incoming)) return false;
    const query = queryAt === -1 ? '' : url.slice(queryAt);
    void answer(dependencies, found, { incoming, outgoing, path, query });
    return true;
  };
}

/** Of headers that come twice, Node keeps the first of some and joins others: such requests go to Hono. */
function isPlain({ headers, rawHeaders }: IncomingMessage): boolean {
  let count = 0;
  for (const _ in headers) count += 2;
  return count === rawHeaders.length && headers['transfer-encoding'] === undefined;
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly path: string;
  readonly query: string;
}

async function answer(
  dependencies: FastPathDependencies,
  { mounted, parameter }: FoundEndpoint,
  exchange: Exchange,
): Promise<void> {
  const { endpoint, path: route, errors } = mounted;
  const { socket, headers } = exchange.incoming;
  const start = dependencies.observer.start({
    socket,
    forwardedFor: readHeader(headers['x-forwarded-for']),
    traceparent: readHeader(headers.traceparent),
  });
  const preset: Record<string, string> = { 'X-Trace-Id': start.traceId, ...NOT_STORED };
  if (endpoint.isOpenToScripts === true) Object.assign(preset, CORS_HEADERS);
  const maxBodyBytes = endpoint.maxBodyBytes ?? dependencies.maxBodyBytes;
  const open: OpenBody = (giveWay) => dependencies.bodyBudget.open(networkOf(start.clientAddress), giveWay);
  const body = createBody(exchange.incoming, open);
  const call = createCall(exchange, { ...start, log: dependencies.log, parameter, maxBodyBytes, preset, body });
  const reply = await callEndpoint(endpoint, call, maxBodyBytes)
    .catch((error: unknown) => replyToError(error, errors, call))
    .finally(body.close);
  send(exchange.outgoing, reply, preset);
  const { method, isProbe } = endpoint;
  dependencies.observer.end(start, { method, path: exchange.path, route, status: reply.status, isProbe });
}

async function callEndpoint(endpoint: Endpoint, call: Call, maxBodyBytes: number): Promise<Reply> {
  checkQuery(call.query);
  checkBodyLength(call.header('content-length'), maxBodyBytes);
  return await endpoint.answer(call);
}

interface CallFacts extends Pick<Call, 'traceId' | 'clientAddress' | 'log'>, EndpointRequest {
  /** `setHeader` adds to these headers. */
  readonly preset: Record<string, string>;
  readonly body: Body;
}

function createCall({ incoming, query }: Exchange, facts: CallFacts): Call {
  const { traceId, clientAddress, log, parameter, maxBodyBytes, preset, body } = facts;
  const text = async () => decoder.decode(await body.read(FORM_MAX_BYTES));
  const arrayBuffer = async () => new Uint8Array(await body.read(FORM_MAX_BYTES)).buffer;
  return {
    method: incoming.method ?? '',
    query,
    parameter,
    traceId,
    log,
    clientAddress,
    header: (name) => readHeader(incoming.headers[name]),
    text,
    bytes: () => body.read(maxBodyBytes),
    form: () => readForm(incoming.headers['content-type'] ?? '', { text, arrayBuffer }),
    setHeader: (name, value) => {
      preset[name] = value;
    },
  };
}

/** Decodes like the Fetch API's `text()`: without a byte order mark. */
const decoder = new TextDecoder();

/** Only `set-cookie` is a list, which endpoints do not read. */
function readHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

interface Body {
  /** Reads the bytes once, at most the declared length, since Node reads no more. */
  readonly read: (maxBytes: number) => Promise<Buffer>;
  /** Must be called once it is no longer needed. */
  readonly close: () => void;
}

/** Counts the body in the budget of bodies. */
type OpenBody = (giveWay: (refusal: Failure) => void) => CountedBody;

function createBody(incoming: IncomingMessage, open: OpenBody): Body {
  let bytes: Promise<Buffer> | undefined;
  let counted: CountedBody | undefined;
  const isLarge = isCounted(incoming.headers['content-length'] ?? '0');
  const receive = (): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      // Its events were emitted already, so no listener below would be called.
      if (incoming.destroyed) return reject(refuseCutOff(incoming.errored));
      const chunks: Buffer[] = [];
      // Bytes after the refusal are read and dropped, so that the client reads its answer.
      if (isLarge) counted = open(reject);
      incoming.on('data', (chunk: Buffer) => {
        if (counted === undefined) chunks.push(chunk);
        else takePart(incoming, counted, chunk);
      });
      incoming.once('end', () => {
        if (counted !== undefined) resolve(counted.complete());
        else resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
      });
      incoming.once('error', (cause) => reject(refuseCutOff(cause)));
      incoming.once('close', () => {
        if (!incoming.readableEnded) reject(refuseCutOff(incoming.errored));
      });
    });
  return {
    async read(maxBytes) {
      checkBodyLength(incoming.headers['content-length'], maxBytes);
      bytes ??= receive();
      return await bytes;
    },
    close: () => {
      if (isLarge && bytes === undefined)
        discard(
          incoming,
          open(() => {}),
        );
      counted?.close();
    },
  };
}

/** Drops the body of a request that was refused before its body was read. */
function discard(incoming: IncomingMessage, body: CountedBody): void {
  body.close();
  incoming.on('data', (chunk: Buffer) => takePart(incoming, body, chunk));
}

/** Reads the next part in a later turn of the event loop, when this body may be read. */
function takePart(incoming: IncomingMessage, body: CountedBody, part: Buffer): void {
  body.add(part);
  if (incoming instanceof CountedMessage && incoming.hold()) body.waitForTurn(() => incoming.goOn());
}

function send(outgoing: ServerResponse, { status, headers, body }: Reply, preset: Record<string, string>): void {
  outgoing.writeHead(status, { ...preset, ...headers, 'Content-Length': Buffer.byteLength(body) });
  outgoing.end(body);
}
