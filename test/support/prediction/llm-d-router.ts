/**
 * Acts as llm-d's router with its latency predictor, as its client is documented: predictions that callers request within a
 * millisecond are merged into one call, up to 36 calls are under way, and an answer other than 200 or one that is too short fails all
 * callers of the call. Training rows are collected and sent once a second, and lost when the answer is not 202. It sends no token,
 * and retries nothing.
 */

export interface RouterRow {
  readonly kv_cache_percentage: number;
  readonly input_token_length: number;
  readonly num_request_waiting: number;
  readonly num_request_running: number;
  readonly num_tokens_generated: number;
  readonly prefix_cache_score: number;
  readonly encoder_input_size: number;
  readonly encoder_matched_size: number;
  readonly pod_type?: string;
  readonly prefill_tokens_in_flight: number;
  readonly decode_tokens_in_flight: number;
}

export interface RouterEntry extends RouterRow {
  readonly actual_ttft_ms: number;
  readonly actual_tpot_ms: number;
  readonly timestamp: string;
}

export interface RouterPrediction {
  readonly ttft_ms: number;
  readonly tpot_ms: number;
  readonly ttft_uncertainty: number;
  readonly tpot_uncertainty: number;
  readonly ttft_prediction_bounds: readonly [number, number];
  readonly tpot_prediction_bounds: readonly [number, number];
  readonly predicted_at: string;
  readonly model_type: string;
  readonly objective_type: string;
  readonly quantile: number;
  readonly last_model_load: string | null;
}

export interface RouterUrls {
  readonly predictionUrl: string;
  readonly trainingUrl: string;
}

export interface Router {
  /** `PredictBulkStrict`: rejects when the whole merged call fails. */
  predict(rows: readonly RouterRow[]): Promise<readonly RouterPrediction[]>;
  /** `AddTrainingDataBulk`: only collects. */
  addTrainingData(entries: readonly RouterEntry[]): void;
  /** What the timer does each second: the HTTP status, or undefined when there was nothing to send. */
  flush(): Promise<number | undefined>;
  /** Calls of predictions sent so far. */
  readonly dispatched: number;
}

const COALESCE_WINDOW_MS = 1;
const MAX_DISPATCHES = 36;

interface Submission {
  readonly rows: readonly RouterRow[];
  readonly answer: PromiseWithResolvers<readonly RouterPrediction[]>;
}

export function createRouter({ predictionUrl, trainingUrl }: RouterUrls): Router {
  let pending: Submission[] = [];
  let collected: RouterEntry[] = [];
  let dispatched = 0;
  const takeSlot = createSlots(MAX_DISPATCHES);

  async function dispatch(): Promise<void> {
    const batch = pending;
    pending = [];
    const freeSlot = await takeSlot();
    dispatched += 1;
    try {
      const predictions = await postStrict(
        predictionUrl,
        batch.flatMap(({ rows }) => rows),
      );
      let start = 0;
      for (const { rows, answer } of batch) {
        const end = start + rows.length;
        if (end > predictions.length)
          answer.reject(new Error(`expected items up to ${end}, got ${predictions.length}`));
        else answer.resolve(predictions.slice(start, end));
        start = end;
      }
    } catch (error) {
      for (const { answer } of batch) answer.reject(error);
    } finally {
      freeSlot();
    }
  }

  return {
    predict(rows) {
      const answer = Promise.withResolvers<readonly RouterPrediction[]>();
      pending.push({ rows, answer });
      // The router collects rows for this long before it calls.
      if (pending.length === 1) setTimeout(() => void dispatch(), COALESCE_WINDOW_MS);
      return answer.promise;
    },
    addTrainingData: (entries) => void collected.push(...entries),
    async flush() {
      if (collected.length === 0) return undefined;
      const entries = collected;
      collected = [];
      return (await postJson(`${trainingUrl}/add_training_data_bulk`, { entries })).status;
    },
    get dispatched() {
      return dispatched;
    },
  };
}

export async function postStrict(url: string, requests: readonly RouterRow[]): Promise<readonly RouterPrediction[]> {
  const response = await postJson(`${url}/predict/bulk/strict`, { requests });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`non-200 status: ${response.status}, body: ${text}`);
  return (JSON.parse(text) as { predictions: RouterPrediction[] }).predictions;
}

export function postJson(url: string, body: unknown): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
}

/** A semaphore: each slot is given back by the function that comes with it. */
function createSlots(count: number): () => Promise<() => void> {
  let free = count;
  const waiting: (() => void)[] = [];
  const give = () => {
    free += 1;
    waiting.shift()?.();
  };
  return async () => {
    while (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    free -= 1;
    return give;
  };
}

export function createRouterRow(changes: Partial<RouterRow> = {}): RouterRow {
  return {
    kv_cache_percentage: 0.25,
    input_token_length: 512,
    num_request_waiting: 0,
    num_request_running: 4,
    num_tokens_generated: 1,
    prefix_cache_score: 0.5,
    encoder_input_size: 0,
    encoder_matched_size: 0,
    prefill_tokens_in_flight: 900,
    decode_tokens_in_flight: 0,
    ...changes,
  };
}

/** The first row of a request: what was predicted from, and the time to its first token. */
export function createTtftEntry(row: RouterRow, ttftMs: number, atMs: number): RouterEntry {
  return {
    ...row,
    num_tokens_generated: 0,
    actual_ttft_ms: Math.floor(ttftMs),
    actual_tpot_ms: 0,
    timestamp: new Date(atMs).toISOString(),
  };
}

/** Its second row: no prefix score, and the queue and cache that the last chunk saw. */
export function createTpotEntry(
  row: RouterRow,
  last: Pick<RouterRow, 'kv_cache_percentage' | 'num_request_waiting'>,
  { tpotMs, atMs }: { readonly tpotMs: number; readonly atMs: number },
): RouterEntry {
  return {
    ...row,
    ...last,
    prefix_cache_score: 0,
    encoder_input_size: 0,
    encoder_matched_size: 0,
    num_tokens_generated: 0,
    actual_ttft_ms: 0,
    actual_tpot_ms: tpotMs,
    timestamp: new Date(atMs).toISOString(),
  };
}
