/**
 * Serves the HTTP interface that llm-d, the Gateway API Inference Extension and KServe expect of a predictor. It is both their
 * prediction server and their training server. The router appends these paths to a base URL, so the base URL can end with the
 * target model.
 */
import { Failure } from '../../errors.ts';
import { isLoopbackAddress } from '../../grpc/call/peer.ts';
import { type CallerRule, checkToken, needsToken } from '../../grpc/call/require-caller.ts';
import { type Call, type Endpoint, type Reply, replyJson } from '../../http/endpoint.ts';
import type { NarrowScope } from '../../scopes.ts';
import type { World } from '../../world.ts';
import { checkModelName } from '../schema/model-name.ts';
import type { AnswerRows } from './answer-rows.ts';
import type { MeasuredTimes } from './measured-times.ts';
import type { ReadReadiness } from './model-readiness.ts';
import { type ItemGroup, MODEL_TYPE, type Objective, writeBulk, writeItemEnd } from './prediction-answer.ts';
import { type PredictionRow, readPredictionRow, readPredictionRows, readTrainingRows } from './read-rows.ts';
import { MAX_BODY_BYTES, readRowBody } from './row-body.ts';
import type { TakeTrainingRows } from './training-intake.ts';
import { MAX_NAME_BYTES } from './training-row-store.ts';

export interface LlmDDependencies {
  readonly world: Pick<World, 'nowMs' | 'monotonicMs'>;
  readonly rule: CallerRule;
  readonly objective: Objective;
  readonly answerRows: AnswerRows;
  readonly takeTrainingRows: TakeTrainingRows;
  readonly measuredTimes: Pick<MeasuredTimes, 'answeringModel'>;
  readonly readReadiness: ReadReadiness;
  /** Observes the time of an answered call, without reading its body. */
  readonly observeSeconds: (seconds: number) => void;
  /** Rejects when the store is not available. */
  readonly checkReady: () => Promise<void>;
}

/** Answers one call about one target model. */
type Answer = (call: Call, targetModel: string) => Promise<Reply>;

export interface LlmDEndpoints {
  /** The endpoints under a path that names the target model. */
  readonly byModel: readonly Endpoint[];
  /** Returns the endpoints of one target model, at the root. */
  ofModel(targetModel: string): readonly Endpoint[];
}

export function createLlmDEndpoints(dependencies: LlmDDependencies): LlmDEndpoints {
  const operations = listOperations(dependencies);
  return {
    byModel: [
      ...operations.map(({ path, answer, ...operation }) => ({
        ...operation,
        path: `/{target_model}${path}`,
        answer: (call: Call) => answer(call, readModelName(call.parameter)),
      })),
      ...operations.flatMap(refuseWithoutModel),
    ],
    ofModel: (targetModel) =>
      operations.map(({ answer, ...operation }) => ({ ...operation, answer: (call) => answer(call, targetModel) })),
  };
}

/** Refuses paths without the name of a model: a base URL without it is a likely mistake. */
function refuseWithoutModel({ method, path }: Pick<Operation, 'method' | 'path'>): Endpoint[] {
  return [path, `/${path}`].map((withoutModel) => ({
    method,
    path: withoutModel,
    async answer() {
      throw new Failure(
        'invalid',
        `Cannot find the target model: the path must name it, as /llm-d/{target_model}${path}`,
      );
    },
  }));
}

interface Operation extends Omit<Endpoint, 'answer'> {
  readonly answer: Answer;
}

/** A call whose body has rows. */
interface PostOperation<T> {
  readonly path: string;
  readonly scope: NarrowScope;
  readonly read: (body: Uint8Array) => Promise<T>;
  readonly answer: (rows: T, targetModel: string) => Promise<Reply>;
}

function listOperations(dependencies: LlmDDependencies): Operation[] {
  const { rule, readReadiness, measuredTimes } = dependencies;
  const get = (path: string, answer: (targetModel: string) => object): Operation => ({
    method: 'GET',
    path,
    async answer(call, targetModel) {
      await requireCaller(rule, call, 'predict');
      return replyJson(answer(targetModel));
    },
  });
  const findReadiness = (targetModel: string) => readReadiness(measuredTimes.answeringModel(targetModel));
  return [
    ...listRowOperations(dependencies),
    get('/status', (targetModel) => describeStatus(dependencies.objective, findReadiness(targetModel))),
    get('/model/download/info', (targetModel) => describeModel(dependencies.objective, findReadiness(targetModel))),
    // Probes have no token, and the answers do not describe the model.
    { method: 'GET', path: '/healthz', isProbe: true, answer: async () => replyJson({ status: 'ok' }) },
    {
      method: 'GET',
      path: '/readyz',
      isProbe: true,
      answer: (_, targetModel) => answerReady(dependencies, findReadiness(targetModel).isReady),
    },
  ];
}

/** Lists the calls whose bodies have rows. */
function listRowOperations(dependencies: LlmDDependencies): Operation[] {
  const { rule } = dependencies;
  const post = <T>({ path, scope, read, answer }: PostOperation<T>): Operation => ({
    method: 'POST',
    path,
    maxBodyBytes: MAX_BODY_BYTES,
    async answer(call, targetModel) {
      await requireCaller(rule, call, scope);
      return await answer(await read(await readRowBody(call)), targetModel);
    },
  });
  const predict = createRowPredictor(dependencies);
  return [
    post({
      path: '/predict',
      scope: 'predict',
      read: readPredictionRow,
      async answer(row, targetModel) {
        const { groups } = await predict(targetModel, [row]);
        return replyBody(groups[0]!);
      },
    }),
    ...[true, false].map((hasErrors) =>
      post({
        path: hasErrors ? '/predict/bulk' : '/predict/bulk/strict',
        scope: 'predict',
        read: readPredictionRows,
        async answer(rows, targetModel) {
          const { groups, durationMs } = await predict(targetModel, rows);
          return replyBody(writeBulk(groups, { count: rows.length, durationMs, hasErrors }));
        },
      }),
    ),
    post({
      path: '/add_training_data_bulk',
      scope: 'observe',
      read: readTrainingRows,
      async answer(rows, targetModel) {
        await dependencies.takeTrainingRows(targetModel, rows);
        return { ...replyJson({ message: `Accepted ${rows.length} training samples.` }), status: 202 };
      },
    }),
  ];
}

interface Predicted {
  readonly groups: readonly ItemGroup[];
  readonly durationMs: number;
}

/** A try fails if the served version changes during it. */
const MAX_TRIES = 5;

function createRowPredictor(dependencies: LlmDDependencies) {
  const { world, objective, answerRows, measuredTimes, readReadiness, observeSeconds } = dependencies;

  async function answerByOneVersion(
    targetModel: string,
    rows: readonly PredictionRow[],
    triesLeft = MAX_TRIES,
  ): Promise<readonly ItemGroup[]> {
    if (triesLeft === 0)
      throw new Failure('unavailable', `The model "${targetModel}" is replaced too often: ask again`);
    const answering = measuredTimes.answeringModel(targetModel);
    const { isReady, loadedAt } = readReadiness(answering);
    if (!isReady) throw new Failure('unavailable', `Nothing was learned yet about the model "${targetModel}"`);
    const itemEnd = writeItemEnd(objective, new Date(world.nowMs()), loadedAt);
    const groups = await answerRows({ targetModel: answering, rows, itemEnd });
    // Versions are swapped seconds apart and a call takes less, so the second try hardly ever meets another swap.
    return groups ?? (await answerByOneVersion(targetModel, rows, triesLeft - 1));
  }

  return async (targetModel: string, rows: readonly PredictionRow[]): Promise<Predicted> => {
    const startedMs = world.monotonicMs();
    const groups = await answerByOneVersion(targetModel, rows);
    const durationMs = world.monotonicMs() - startedMs;
    observeSeconds(durationMs / 1000);
    return { groups, durationMs };
  };
}

function replyBody(body: ItemGroup): Reply {
  return { status: 200, headers: { 'Content-Type': 'application/json' }, body };
}

function describeStatus({ type, quantile }: Objective, readiness: ReturnType<ReadReadiness>) {
  return {
    is_ready: readiness.isReady,
    model_type: MODEL_TYPE,
    objective_type: type,
    quantile,
    last_model_load: readiness.loadedAt?.toISOString() ?? null,
    // Empty, because training is done here and not on another server.
    training_server_url: '',
    models_exist: { ttft_model: readiness.hasTtft, tpot_model: readiness.hasTpot },
    ensemble_active: false,
  };
}

function describeModel({ type, quantile }: Objective, readiness: ReturnType<ReadReadiness>) {
  return {
    model_type: MODEL_TYPE,
    objective_type: type,
    quantile,
    // Empty, because clients do not fetch models to evaluate them.
    available_endpoints: {},
    model_status: { ttft_model_ready: readiness.hasTtft, tpot_model_ready: readiness.hasTpot },
    evaluation_info: {},
  };
}

async function answerReady({ objective, checkReady }: LlmDDependencies, isReady: boolean): Promise<Reply> {
  if (!isReady) throw new Failure('unavailable', 'Models are not ready');
  try {
    await checkReady();
  } catch (cause) {
    throw new Failure('unavailable', 'The store is not ready', {}, { cause });
  }
  return replyJson({
    status: 'ready',
    model_type: MODEL_TYPE,
    objective_type: objective.type,
    quantile: objective.quantile,
  });
}

/** Requires a token under the same rule as gRPC. A caller that a proxy names is not on loopback, so it always needs one. */
async function requireCaller(rule: CallerRule, call: Call, scope: NarrowScope): Promise<void> {
  const caller = { header: (name: string) => call.header(name), isLoopback: isLoopbackAddress(call.clientAddress) };
  if (needsToken(rule.mode, caller)) await checkToken(rule, caller, scope);
}

function readModelName(parameter: string): string {
  const name = decodeName(parameter);
  checkModelName(name);
  // A base URL that ends with a slash would otherwise name another model.
  if (name.startsWith('/') || name.endsWith('/'))
    throw new Failure('invalid', `Cannot use this model name: it must not begin or end with "/", got "${name}"`);
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name;
  throw new Failure('invalid', `Cannot use this model name: it must have at most ${MAX_NAME_BYTES} bytes`);
}

function decodeName(parameter: string): string {
  try {
    return decodeURIComponent(parameter);
  } catch {
    throw new Failure('invalid', `Cannot read the model name: "${parameter}" is not percent-encoded UTF-8`);
  }
}
