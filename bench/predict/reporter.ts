/** Reports the outcome of calls, as a gateway does: the dispatch, the first token and the end of requests, in batches. */
import { connectRaw } from '../../test/support/grpc/grpc-client.ts';
import { decodeMessage, encodeMessage, messageType } from '../../test/support/grpc/proto-messages.ts';
import type { LoadConnection } from './grpc-load.ts';
import { createInput } from './messages.ts';

const PATH = '/observation.v1.ObservationService/ReportBatch';
const Batch = messageType('observation.v1.ReportBatchRequest');
const Answer = messageType('observation.v1.ReportResponse');
const REQUESTS_A_BATCH = 32;
/** Enough reports for the mean residuals of the servers to count. */
export const PRIMED_REQUESTS = 640;
const EVENTS_A_REQUEST = 3;
/** Reports beyond this queue length are dropped, as by a gateway with a bounded queue; reports/s is then less than the share of calls. */
const MAX_UNANSWERED = 8;

export interface Reporter extends AsyncDisposable {
  /** Reports this many requests before the load. */
  prime(requests: number): Promise<void>;
  /** Returns the connections so that a report follows this share of the answered calls. */
  follow(connections: readonly LoadConnection[], share: number): LoadConnection[];
  /** The number of requests that were reported and stored. */
  stored(): number;
}

export function openReporter(port: number, candidates: number): Reporter {
  const client = connectRaw(`127.0.0.1:${port}`);
  let created = 0;
  let stored = 0;
  const unanswered = new Set<Promise<void>>();
  const reportBatch = async (): Promise<void> => {
    const events = Array.from({ length: REQUESTS_A_BATCH }, () => createEvents(created++, candidates)).flat();
    const answer = decodeMessage<{ accepted: number }>(
      Answer,
      await client.unary(PATH, encodeMessage(Batch, { events })),
    );
    if (answer.accepted !== events.length) throw new Error(`${events.length - answer.accepted} events were refused`);
    stored += answer.accepted / EVENTS_A_REQUEST;
  };
  return {
    prime: async (requests) => {
      while (created < requests) await reportBatch();
    },
    follow: (connections, share) => {
      let due = 0;
      const followCall = (): void => {
        due += share;
        if (due < REQUESTS_A_BATCH) return;
        due -= REQUESTS_A_BATCH;
        if (unanswered.size >= MAX_UNANSWERED) return;
        const batch = reportBatch();
        unanswered.add(batch);
        void batch.then(() => unanswered.delete(batch));
      };
      return connections.map((connection) => ({
        close: () => connection.close(),
        send: (done) =>
          connection.send((isAnswered) => {
            done(isAnswered);
            followCall();
          }),
      }));
    },
    stored: () => stored,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(unanswered);
      client[Symbol.dispose]();
    },
  };
}

function createEvents(request: number, candidates: number): object[] {
  const requestId = `bench-${request}`;
  const input = createInput(request % candidates, (request * 7) % candidates);
  const noise = 0.9 + (0.2 * ((request * 31) % 64)) / 64;
  const ttftMillis = noise * (20 + input.inputTokenLength * 0.05 + input.numRequestWaiting * 40);
  const tpotMillis = noise * (6 + input.numRequestRunning * 0.4);
  return [
    { dispatched: { requestId, targetModel: 'qwen3-32b', input } },
    { firstToken: { requestId, ttftMillis } },
    { finished: { requestId, tpotMillis, outputTokens: 100 } },
  ];
}
