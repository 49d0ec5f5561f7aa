/** Calls Predict and ReportBatch over HTTP with `fetch`, without dependencies. */
import { readAnswer, readTaken } from './http-answers.ts';
import type { Client, Event, ReportOptions } from './messages.ts';
import { createReporter, type Failure } from './reporter.ts';

const REPORT_WITHIN_MS = 5000;
/** HTTP statuses for a batch that the service cannot read or that is too large. */
const FINAL_STATUSES: readonly number[] = [400, 413];

export interface HttpOptions extends ReportOptions {
  readonly token?: string;
  /** Allows to send the token to another machine over http, where others on the network can read it. */
  readonly allowsTokenInClear?: boolean;
}

interface CallRequest {
  readonly type: 'application/json' | 'application/jsonl';
  readonly body: string;
  readonly withinMs: number;
}

/** Throws if a token would leave this machine as plaintext. */
export function connectHttp(url: string, { token, allowsTokenInClear, ...options }: HttpOptions = {}): Client {
  if (token !== undefined && allowsTokenInClear !== true) checkPrivate(new URL(url));
  const baseUrl = url.replace(/\/+$/, '');
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function call(path: string, { type, body, withinMs }: CallRequest): Promise<unknown> {
    const response = await fetch(baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': type, ...authorization },
      body,
      signal: AbortSignal.timeout(withinMs),
    });
    if (!response.ok) throw new HttpError(path, response, await response.text());
    return response.json();
  }

  async function sendBatch(lines: readonly string[]) {
    const request = { type: 'application/jsonl', body: lines.join('\n'), withinMs: REPORT_WITHIN_MS } as const;
    return readTaken(await call('/observation.v1.ObservationService/ReportBatch', request));
  }
  const reporter = createReporter(
    { encode: (event: Event) => JSON.stringify(event), sendBatch, describeFailure },
    options,
  );

  return {
    async predict(targetModel, inputs, deadlineMs) {
      const body = JSON.stringify({ targetModel, inputs });
      const request = { type: 'application/json', body, withinMs: deadlineMs } as const;
      return readAnswer(await call('/prediction.v1.PredictionService/Predict', request));
    },
    report: reporter.send,
    stats: reporter.stats,
    close: reporter.close,
  };
}

/** Throws unless the connection has TLS or stays on this machine. */
function checkPrivate({ protocol, hostname, host }: URL): void {
  if (protocol !== 'https:' && !/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname))
    throw new Error(`Cannot send the token to ${host} without TLS: use https, or set allowsTokenInClear`);
}

class HttpError extends Error {
  readonly failure: Failure;

  constructor(path: string, { status, headers }: Response, text: string) {
    super(`${path} answered ${status}: ${text}`);
    const retryAfter = headers.get('retry-after') ?? '';
    // A date, which proxies may send, is ignored.
    const retryAfterMs = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : 0;
    this.failure = { isFinal: FINAL_STATUSES.includes(status), retryAfterMs };
  }
}

function describeFailure(error: unknown): Failure {
  return error instanceof HttpError ? error.failure : { isFinal: false, retryAfterMs: 0 };
}
