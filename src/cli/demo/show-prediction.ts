/** Shows predictions in the demo: a gateway asks for four candidate servers. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatTable, print } from '../../command-line/output.ts';
import { connectGateway, type Gateway, type PredictInput, type PredictResponse } from './gateway.ts';
import { indent, printStep, runShown, type Stage } from './stage.ts';

const MODEL = 'demo-8b';

/** One request of 2,000 tokens, and what four servers report at that moment. */
const CANDIDATES: readonly PredictInput[] = [
  describe(1, 'large-0', {
    prefix_cache_score: 0,
    num_request_waiting: 0,
    num_request_running: 24,
    kv_cache_usage: 0.12,
    inflight_tokens: 26_000,
  }),
  describe(2, 'medium-1', {
    prefix_cache_score: 0.9,
    num_request_waiting: 0,
    num_request_running: 9,
    kv_cache_usage: 0.08,
    inflight_tokens: 9_000,
  }),
  describe(3, 'medium-2', {
    prefix_cache_score: 0,
    num_request_waiting: 6,
    num_request_running: 30,
    kv_cache_usage: 0.3,
    inflight_tokens: 44_000,
  }),
  describe(4, 'small-3', {
    prefix_cache_score: 0,
    num_request_waiting: 0,
    num_request_running: 0,
    kv_cache_usage: 0,
    inflight_tokens: 0,
  }),
];

function describe(
  id: number,
  server: string,
  load: Omit<PredictInput, 'input_id' | 'server_ip' | 'input_token_length'>,
): PredictInput {
  return { input_id: id, server_ip: server, input_token_length: 2000, ...load };
}

/** Makes a trace, learns from it, and asks as a gateway would. */
export async function showPrediction(stage: Stage): Promise<void> {
  const trace = join(stage.folder, 'trace.jsonl');
  const gateway = connectGateway(stage.grpcAddress);
  try {
    printStep('A gateway asks before anything was learned: the prior answers');
    printAnswer(await ask(gateway));
    printStep('A simulated pool of four unlike servers, ten minutes of traffic');
    await runShown(stage, ['simulate', '--output', trace]);
    printStep('Train a model on what its gateway observed');
    await runShown(stage, ['model', 'train', '--model', MODEL, '--input', trace]);
    printStep('The same question again; the running service took the new version over');
    printAnswer(await askUntilLearned(gateway, stage.signal));
  } finally {
    gateway.close();
  }
}

function ask(gateway: Gateway): Promise<PredictResponse> {
  return gateway.predict({ target_model: MODEL, inputs: CANDIDATES });
}

/** A promotion by another process reaches the service within a second. */
async function askUntilLearned(gateway: Gateway, signal: AbortSignal): Promise<PredictResponse> {
  const deadlineMs = Date.now() + 10_000;
  while (true) {
    const answer = await ask(gateway);
    if (answer.metadata.model_version.startsWith(MODEL) || Date.now() > deadlineMs) return answer;
    await sleep(100, undefined, { signal });
  }
}

function printAnswer({ outputs, metadata }: PredictResponse): void {
  const fastest = Math.min(...outputs.map((output) => output.predicted_ttft_millis));
  const rows = outputs.map((output, index) => [
    output.server_ip,
    CANDIDATES[index]?.num_request_waiting,
    CANDIDATES[index]?.num_request_running,
    CANDIDATES[index]?.prefix_cache_score,
    round(output.predicted_ttft_millis),
    round(output.predicted_tpot_millis),
    output.predicted_ttft_millis === fastest ? '← send it here' : '',
  ]);
  print(`gRPC prediction.v1.PredictionService/Predict, answered by ${metadata.model_version}`);
  print(indent(formatTable(['server', 'waiting', 'running', 'prefix', 'TTFT ms', 'TPOT ms', ''], rows)));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
