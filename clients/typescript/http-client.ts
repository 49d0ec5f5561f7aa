/** Predict and ReportBatch over HTTP with `fetch`: no dependency. */
import type { Answer, Client, ReportOptions } from './messages.ts';
import { createReporter } from './reporter.ts';

const REPORT_WITHIN_MS = 5000;

export interface HttpOptions extends ReportOptions {
  readonly token?: string;
}

interface CallRequest {
  readonly type: 'application/json' | 'application/jsonl';
  readonly body: string;
  readonly withinMs: number;
}

export function connectHttp(url: string, { token, ...options }: HttpOptions = {}): Client {
  const baseUrl = url.replace(/\/+$/, '');
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function call(path: string, { type, body, withinMs }: CallRequest): Promise<unknown> {
    const response = await fetch(baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': type, ...authorization },
      body,
      signal: AbortSignal.timeout(withinMs),
    });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response.json();
  }

  const reporter = createReporter(async (events) => {
    const body = events.map((event) => JSON.stringify(event)).join('\n');
    const request = { type: 'application/jsonl', body, withinMs: REPORT_WITHIN_MS } as const;
    const answer = await call('/observation.v1.ObservationService/ReportBatch', request);
    // 64-bit counts are texts in the JSON of proto3.
    const { accepted, refused } = answer as { accepted: string; refused: string };
    return { accepted: Number(accepted), refused: Number(refused) };
  }, options);

  return {
    async predict(targetModel, inputs, deadlineMs) {
      const body = JSON.stringify({ targetModel, inputs });
      const request = { type: 'application/json', body, withinMs: deadlineMs } as const;
      return (await call('/prediction.v1.PredictionService/Predict', request)) as Answer;
    },
    report: reporter.send,
    stats: reporter.stats,
    close: reporter.close,
  };
}
