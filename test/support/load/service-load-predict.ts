/** The Predict calls of a service load. */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRaw } from '../grpc/grpc-client.ts';
import { decodeMessage, encodeMessage, PredictRequest, PredictResponse } from '../grpc/proto-messages.ts';
import type { Program } from '../programs/start-program.ts';

export interface PredictLoad {
  readonly stopping: AbortController;
  /** The processes that take calls now; the list may change. */
  readonly programs: readonly Program[];
  readonly failures: string[];
  readonly counts: { predicted: number; slowestPredictMs: number };
}

/** The pace of each caller. */
const PREDICT_EVERY_MS = 5;

/** Runs one gRPC caller for each process that takes calls, from beginning to end. A failed call is a failure, without a retry. */
export async function predictAll(state: PredictLoad): Promise<void> {
  const asked = new Set<Program>();
  while (!state.stopping.signal.aborted) {
    for (const program of state.programs)
      if (!asked.has(program)) {
        asked.add(program);
        void keepPredicting(state, program);
      }
    // The list of programs has no event.
    await sleep(PREDICT_EVERY_MS);
  }
}

const PREDICT = encodeMessage(PredictRequest, {
  targetModel: 'm1',
  inputs: [{ inputId: 1, inputTokenLength: 100, serverIp: '10.0.0.1' }],
});

async function keepPredicting(state: PredictLoad, program: Program): Promise<void> {
  using client = connectRaw(program.grpcAddress);
  while (!state.stopping.signal.aborted && state.programs.includes(program)) {
    const startMs = performance.now();
    try {
      const bytes = await client.unary('/prediction.v1.PredictionService/Predict', PREDICT, { deadlineMs: 5000 });
      const { outputs } = decodeMessage<{ outputs: unknown[] }>(PredictResponse, bytes);
      if (outputs.length !== 1) state.failures.push('Predict: no output');
      state.counts.predicted += 1;
    } catch (error) {
      state.failures.push(`Predict: ${(error as Error).message}`);
    }
    state.counts.slowestPredictMs = Math.max(state.counts.slowestPredictMs, performance.now() - startMs);
    // The pace of a caller.
    await sleep(PREDICT_EVERY_MS);
  }
}
