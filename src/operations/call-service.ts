/** Calls an operation of a running service over HTTP, and formats its refusals for the command line. */
import { Failure, type FailureCode } from '../errors.ts';
import type { World } from '../world.ts';
import { type AnyOperation, listPathFields, OPERATIONS_PATH, sendsJson } from './operation.ts';

export interface Service {
  /** The URL of the service, without a slash at its end. */
  readonly url: string;
  readonly token: string;
}

export interface ServiceCall {
  readonly operation: AnyOperation;
  readonly input: Readonly<Record<string, unknown>>;
  readonly file?: Uint8Array | undefined;
}

const TIMEOUT_MS = 60_000;
/** The time limit of a call: the service reads a file in a separate process for up to five minutes, the longest that `fetch` waits too. */
const LONG_TIMEOUT_MS = 300_000;

export function callService(service: Service, call: ServiceCall): Promise<unknown> {
  return callWithin(findTimeoutMs(call.operation), service, call);
}

/** Exported for its test. `timeoutMs` is how long it waits for the answer. */
export async function callWithin(timeoutMs: number, service: Service, call: ServiceCall): Promise<unknown> {
  const { operation } = call;
  const response = await ask(timeoutMs, service, call);
  if (!response.ok) throw await readRefusal(service, response);
  if (!operation.givesFile) return await readJsonAnswer(service.url, response);
  return new Uint8Array(
    await response.arrayBuffer().catch((error: unknown) => {
      throw refuseUnreachable(service.url, error);
    }),
  );
}

/** Reads the `Date` of an answer, to the second, or the machine's own time where an answer has none. */
export async function readServiceTimeMs(url: string, { nowMs }: Pick<World, 'nowMs'>): Promise<number> {
  const response = await fetch(`${url}/healthz`, {
    method: 'HEAD',
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: unknown) => {
    throw refuseUnreachable(url, error);
  });
  const timeMs = Date.parse(response.headers.get('date') ?? '');
  return Number.isNaN(timeMs) ? nowMs() : timeMs;
}

/** An answer that is not JSON is not from this program; any other failure is one of the connection. */
export async function readJsonAnswer(url: string, response: Response): Promise<unknown> {
  return await response.json().catch((error: unknown) => {
    throw refuseAnswer(url, error);
  });
}

/** Returns the refusal of an answer that could not be read as JSON. */
export function refuseAnswer(url: string, error: unknown): Failure {
  return error instanceof SyntaxError ? refuseOtherService(url) : refuseUnreachable(url, error);
}

/** Returns the refusal for an address at which another program answers. */
export function refuseOtherService(url: string): Failure {
  return new Failure('unavailable', `${url} answered something else than a Trivet service: check the address`);
}

function createRequest({ url, token }: Service, { operation, input, file }: ServiceCall): Request {
  const inPath = listPathFields(operation.path);
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input[name])));
  const rest = Object.entries(input).filter(([name, value]) => !inPath.includes(name) && value !== undefined);
  const isJson = sendsJson(operation);
  const query = isJson
    ? ''
    : new URLSearchParams(rest.map(([name, value]): [string, string] => [name, String(value)])).toString();
  const body = isJson ? JSON.stringify(Object.fromEntries(rest)) : file && new Uint8Array(file);
  return new Request(`${url}${OPERATIONS_PATH}${path}${query === '' ? '' : `?${query}`}`, {
    method: operation.method.toUpperCase(),
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'Content-Type': isJson ? 'application/json' : 'application/octet-stream' }),
    },
    ...(body === undefined ? {} : { body }),
    // A redirect could lead elsewhere with the token.
    redirect: 'error',
  });
}

async function ask(timeoutMs: number, service: Service, call: ServiceCall): Promise<Response> {
  try {
    return await fetch(createRequest(service, call), { signal: AbortSignal.timeout(timeoutMs) });
  } catch (error) {
    throw isTimeout(error) ? refuseSilent(service, call.operation, timeoutMs) : refuseUnreachable(service.url, error);
  }
}

function findTimeoutMs({ takesFileOf, takesLong }: AnyOperation): number {
  return takesFileOf === undefined && takesLong === undefined ? TIMEOUT_MS : LONG_TIMEOUT_MS;
}

/** Whether our time limit or that of `fetch` was exceeded. */
function isTimeout(error: unknown): boolean {
  return (error as Error).name === 'TimeoutError' || readCode((error as Error).cause) === 'UND_ERR_HEADERS_TIMEOUT';
}

function readCode(cause: unknown): string {
  return cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? '') : '';
}

function refuseSilent({ url }: Service, { method }: AnyOperation, timeoutMs: number): Failure {
  const advice = method === 'get' ? '' : '. It may still be at work: look at what has changed before you try again';
  return new Failure('unavailable', `${url} did not answer within ${timeoutMs / 1000} s${advice}`);
}

export function refuseUnreachable(url: string, error: unknown): Failure {
  const { message, cause } = error as Error;
  const words = cause instanceof Error && cause.message !== '' ? cause.message : message;
  const reason = isTimeout(error) ? 'it did not answer in time' : words;
  const code = readCode(cause);
  return new Failure('unavailable', `Cannot reach ${url}: ${explainTls(code, reason) ?? reason}`);
}

/** Explains a failure of TLS more clearly than OpenSSL and Node; undefined for other reasons. */
function explainTls(code: string, reason: string): string | undefined {
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return 'it does not speak https at this port';
  const [problem] = reason.split(';');
  return UNTRUSTED.has(code) ? `${problem}${TRUST_ADVICE}` : undefined;
}

/** OpenSSL's codes for a certificate that no trusted authority has signed. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);
const TRUST_ADVICE = '. To trust it, set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority';

interface Problem {
  readonly code?: FailureCode;
  readonly detail?: string;
}

async function readRefusal({ url }: Service, response: Response): Promise<Failure> {
  const { code, detail } = await readProblem(response);
  const reason = detail ?? `it answered ${response.status}`;
  if (response.status === 401)
    return new Failure('unauthenticated', `${url} refused the token: ${reason}. Sign in with: trivet login ${url}`);
  const scope = /\bscope="([^"]+)"/.exec(response.headers.get('www-authenticate') ?? '')?.[1];
  if (response.status === 403 && scope !== undefined)
    return new Failure('forbidden', `${url} refused: ${reason}. Sign in with: trivet login ${url} --scope ${scope}`);
  if (code === undefined) return new Failure('unavailable', `${url} refused: ${reason}`);
  return new Failure(code, reason);
}

/** A proxy in between may answer in another format. */
async function readProblem(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem;
  } catch {
    return {};
  }
}
