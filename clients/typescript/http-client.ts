/** Predict and ReportBatch over HTTP with `fetch`: no dependency. */
import type { Answer, Client, Event, Reported } from './messages.ts';

const REPORT_EVERY_MS = 1000;
const REPORT_WITHIN_MS = 10_000;
const MAX_BATCH = 500;
/** Events that wait while the service is away. Beyond it, events are dropped and counted. */
const MAX_WAITING = 10_000;

export interface HttpOptions {
  readonly token?: string;
}

export function connectHttp(url: string, { token }: HttpOptions = {}): Client {
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const waiting: Event[] = [];
  const reported = { accepted: 0, refused: 0, dropped: 0 };
  let sending: Promise<void> | undefined;
  const timer = setInterval(() => void flush(), REPORT_EVERY_MS).unref();

  async function call(path: string, request: { type: string; body: string; withinMs: number }): Promise<unknown> {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': request.type, ...authorization },
      body: request.body,
      signal: AbortSignal.timeout(request.withinMs),
    });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response.json();
  }

  async function sendBatches(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, MAX_BATCH);
      const body = batch.map((event) => JSON.stringify(event)).join('\n');
      const request = { type: 'application/jsonl', body, withinMs: REPORT_WITHIN_MS };
      // 64-bit counts are texts in the JSON of proto3.
      const answer = (await call('/observation.v1.ObservationService/ReportBatch', request)) as {
        accepted: string;
        refused: string;
      };
      waiting.splice(0, batch.length);
      reported.accepted += Number(answer.accepted);
      reported.refused += Number(answer.refused);
    }
  }

  /** One batch at a time. When the service is away, events wait for the next attempt. */
  async function flush(): Promise<void> {
    sending ??= sendBatches().catch(() => undefined);
    await sending;
    sending = undefined;
  }

  return {
    async predict(targetModel, inputs, deadlineMs) {
      const body = JSON.stringify({ targetModel, inputs });
      const request = { type: 'application/json', body, withinMs: deadlineMs };
      return (await call('/prediction.v1.PredictionService/Predict', request)) as Answer;
    },
    report(event) {
      if (waiting.length < MAX_WAITING) waiting.push(event);
      else reported.dropped++;
    },
    async close(): Promise<Reported> {
      clearInterval(timer);
      await flush();
      await flush();
      return { ...reported, dropped: reported.dropped + waiting.length };
    },
  };
}
