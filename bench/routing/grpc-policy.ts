/**
 * The same policy with a running service in place of a model in this process: every request asks Predict, and its
 * dispatch, first token and end are reported, all over gRPC on a unix socket. Simulated time stops meanwhile.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { RemotePolicy } from '../../src/prediction/simulator/simulate.ts';
import { connectRaw } from '../../test/support/grpc/grpc-client.ts';
import {
  decodeMessage,
  encodeMessage,
  messageType,
  PredictRequest,
  PredictResponse,
} from '../../test/support/grpc/proto-messages.ts';
import { createDataDir, startProgram } from '../../test/support/programs/start-program.ts';
import {
  createServerPicker,
  describeInput,
  estimateLength,
  type GatewayInput,
  scoreServer,
  withoutLoad,
} from './gateway.ts';

const Event = messageType('observation.v1.Event');
const ReportResponse = messageType('observation.v1.ReportResponse');
const TARGET_MODEL = 'm';
/** The service's default: it is trained again after this many reported requests. */
const REFIT_ROWS = 1000;
const LEARNING_MS = 600_000;
/** Long, since other work on the machine may delay a run, and should not end it. */
const DEADLINE_MS = 600_000;

export interface GrpcPolicy extends AsyncDisposable {
  readonly policy: RemotePolicy;
  /** Calls made so far. */
  readonly calls: { predict: number; report: number };
}

export async function startGrpcPolicy(): Promise<GrpcPolicy> {
  const dataDir = createDataDir();
  const socket = `${dataDir}/grpc.sock`;
  const program = await startProgram({ GRPC_UNIX_SOCKET: socket }, dataDir);
  const service = connectService(`unix:${socket}`);
  const calls = { predict: 0, report: 0 };
  const length = estimateLength();
  const pickServer = createServerPicker();
  let ended = 0;

  async function report(event: object): Promise<void> {
    calls.report++;
    await service.report(event);
  }

  const policy: RemotePolicy = {
    name: 'trivet over gRPC',
    async choose(request, candidates) {
      calls.predict++;
      const inputs = candidates.map(describeInput);
      const answers = await service.predict([...inputs, ...inputs.map(withoutLoad)]);
      const scores = candidates.map((candidate, i) =>
        scoreServer(answers[i]!, answers[inputs.length + i]!, candidate, length.mean()),
      );
      const chosen = pickServer(scores, candidates);
      const input = toMessage(inputs[chosen]!);
      await report({ dispatched: { requestId: String(request.id), targetModel: TARGET_MODEL, input } });
      return chosen;
    },
    onFirstToken: (request, _candidate, ttftMillis) =>
      report({ firstToken: { requestId: String(request.id), ttftMillis } }),
    async onFinished({ id, outputTokens }, _candidate, tpotMillis) {
      await report({ finished: { requestId: String(id), tpotMillis, outputTokens } });
      length.observe(outputTokens);
      ended++;
      // Simulated requests arrive faster than real ones, so the run waits for as many trainings as real time would allow.
      if (ended === 50 || ended % REFIT_ROWS === 50)
        await waitForTraining(program.httpUrl, 1 + Math.floor(ended / REFIT_ROWS));
    },
  };
  return {
    policy,
    calls,
    async [Symbol.asyncDispose]() {
      service.close();
      await program[Symbol.asyncDispose]();
    },
  };
}

interface PredictAnswer {
  readonly outputs: readonly { readonly predictedTtftMillis: number; readonly predictedTpotMillis: number }[];
}

function connectService(address: string) {
  const client = connectRaw(address);
  return {
    close: () => client[Symbol.dispose](),
    async predict(inputs: readonly GatewayInput[]) {
      const request = { targetModel: TARGET_MODEL, inputs: inputs.map(toMessage) };
      const bytes = await client.unary(
        '/prediction.v1.PredictionService/Predict',
        encodeMessage(PredictRequest, request),
        { deadlineMs: DEADLINE_MS },
      );
      const { outputs } = decodeMessage<PredictAnswer>(PredictResponse, bytes);
      return outputs.map((output) => ({ ttftMs: output.predictedTtftMillis, tpotMs: output.predictedTpotMillis }));
    },
    async report(event: object): Promise<void> {
      const bytes = await client.clientStream(
        '/observation.v1.ObservationService/Report',
        [encodeMessage(Event, event)],
        { deadlineMs: DEADLINE_MS },
      );
      const { refusals } = decodeMessage<{ readonly refusals: readonly object[] }>(ReportResponse, bytes);
      if (refusals.length > 0) throw new Error(`The service refused a report: ${JSON.stringify(refusals)}`);
    },
  };
}

function toMessage({ server, ...metrics }: GatewayInput, index = 0): object {
  return { ...metrics, inputId: index, serverIp: server };
}

/** Resolves once the service has trained this often, whether it serves the new model or keeps the old one. */
async function waitForTraining(httpUrl: string, trainings: number): Promise<void> {
  const untilMs = performance.now() + LEARNING_MS;
  while (performance.now() < untilMs) {
    const text = await (await fetch(`${httpUrl}/metrics`)).text();
    const counts = [...text.matchAll(/^trivet_prediction_trainings_total\{[^}]*\} (\d+)/gm)];
    if (counts.reduce((sum, [, count]) => sum + Number(count), 0) >= trainings) return;
    await sleep(100);
  }
  throw new Error(`The service did not learn within ${LEARNING_MS / 1000} s`);
}
