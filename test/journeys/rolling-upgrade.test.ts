/**
 * The release before and this one serve together on one PostgreSQL, as during an upgrade and as after a way back: no call
 * fails, nothing is lost, and each serves the models of the other or names the reason why not.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { migrations } from '../../src/database/migrations/list.ts';
import { request } from '../support/authorization/authorization-server.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { checkOutReleasedProgram, type ReleasedProgram } from '../support/deploy/released-program.ts';
import { createServiceLoad, type ServiceLoad } from '../support/load/service-load.ts';
import { startReceivers } from '../support/network/receiver.ts';
import { observePool } from '../support/prediction/observed-pool.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, findReasonToSkip, openTestStore } from '../support/store/engines.ts';
import { startPublishingService } from '../support/webhooks/publishing-service.ts';

const skip = findReasonToSkip('postgres');
const HOOKS = 2;
const SCALE = { events: 80, refreshes: 80, observations: 400, codes: 10 };

const REQUIRED = migrations.filter(({ isExpansion }) => !isExpansion);
const ENVIRONMENT = { LOG_LEVEL: 'warn', PREDICTION_LEARNING: 'off', AUTHORIZATION_CODE_SECONDS: '600' };

let released: ReleasedProgram;
before(() => {
  if (!skip) released = checkOutReleasedProgram();
});
after(() => released?.[Symbol.dispose]());

interface Order {
  readonly title: string;
  /** The folders of the program that runs first, and of the one that takes its place; undefined is this one. */
  readonly folders: () => [first: string | undefined, second: string | undefined];
  /** The release before closes connections that are idle at its stop, whatever is on its way on them. */
  readonly isSettledFirst: boolean;
}

const ORDERS: readonly Order[] = [
  {
    title: 'this release joins the one before and takes its place',
    folders: () => [released.folder, undefined],
    isSettledFirst: true,
  },
  {
    title: 'the release before joins this one and takes its place',
    folders: () => [undefined, released.folder],
    isSettledFirst: false,
  },
];
for (const { title, folders, isSettledFirst } of ORDERS)
  test(`${title}: no call fails and nothing is lost`, { skip }, async (t) => {
    await using undo = new AsyncDisposableStack();
    const [first, second] = folders();
    const place = await createStorePlace('postgres');
    let load: ServiceLoad | undefined;
    const { urls } = undo.use(await startReceivers(HOOKS, (hook, received) => load?.receive(hook, received)));
    // The test must not bring the database up to date: that is for the program that joins, while there are calls.
    const service = undo.use(
      await startPublishingService({
        place,
        urls,
        processes: 1,
        environment: ENVIRONMENT,
        folder: first,
        createToken: (environment) => createToken(first, environment),
      }),
    );
    const store = undo.use(await openTestStore(place, { migrations: REQUIRED }));
    const programs: Program[] = [...service.programs];
    load = await createServiceLoad({ service, store, programs, hooks: HOOKS, scale: SCALE });
    undo.defer(() => load!.stop());
    const running = load.run();
    await waitForLoad(load, ({ accepted }) => accepted > SCALE.events / 5);
    programs.push(undo.use(await startProgram(service.environment, undefined, second)));
    await waitForLoad(load, ({ accepted }) => accepted > (SCALE.events * 3) / 5);
    const [leaving] = programs.splice(0, 1);
    if (isSettledFirst) await load.settle();
    assert.equal(await leaving?.stop(), 0);
    await running;
    await waitForLoad(load, ({ received }) => received === SCALE.events * HOOKS);
    load.stop();
    assert.deepEqual(load.failures, []);
    assert.deepEqual([...load.counts.repeated], [], 'every call was answered at once');
    assert.deepEqual(await load.findLosses(store), []);
    for (const program of programs) assert.equal(await program.stop(), 0);
    t.diagnostic(JSON.stringify({ ...load.counts, sentAgain: load.countSentAgain() }));
  });

/** As an operator of that release does. */
async function createToken(folder: string | undefined, env: Readonly<Record<string, string>>): Promise<string> {
  const run = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runTrivet(argv, { env, folder });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await run('user', 'create', '--login', 'grace', '--name', 'Grace');
  return await run('token', 'create', '--user', 'grace', '--name', 't', '--scope', 'all_hook', 'all_projects');
}

async function waitForLoad(load: ServiceLoad, holds: (counts: ServiceLoad['counts']) => boolean): Promise<void> {
  await waitUntil(() => holds(load.counts) || load.failures.length > 0);
}

const ROWS = observePool({ rows: 300 });
const LINES = ROWS.map(({ input, ttftMs, tpotMs }) =>
  JSON.stringify({ observation: { targetModel: 'm', input, ttftMillis: ttftMs, tpotMillis: tpotMs, outputTokens: 2 } }),
);

interface Prediction {
  readonly version: string;
  readonly ttftMs: number;
}

async function predict({ httpUrl }: Program): Promise<Prediction> {
  const body = JSON.stringify({ targetModel: 'm', inputs: [{ ...ROWS[0]!.input, inputId: 1 }] });
  const answer = await request(`${httpUrl}/prediction.v1.PredictionService/Predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const { outputs, metadata } = answer.json as {
    outputs: { predictedTtftMillis: number }[];
    metadata: { modelVersion: string };
  };
  assert.equal(outputs.length, 1, answer.text);
  return { version: metadata.modelVersion, ttftMs: outputs[0]!.predictedTtftMillis };
}

/** It serves the version, or has named the reason why not. */
async function waitUntilSettled(program: Program, version: string): Promise<string> {
  return await waitUntil(async () => {
    const prediction = await predict(program);
    if (prediction.version === version) return `serves it: ${prediction.ttftMs.toFixed(3)} ms`;
    const line = program
      .log()
      .split('\n')
      .find((text) => text.includes('Cannot load a promoted model') && text.includes(`"${version}"`));
    return line !== undefined && `skips it: ${(JSON.parse(line) as { err: { message: string } }).err.message}`;
  });
}

test('each serves the models of the other, or names why not and answers as before', { skip }, async (t) => {
  await using undo = new AsyncDisposableStack();
  const place = await createStorePlace('postgres');
  const keys = Buffer.alloc(32, 7).toString('base64');
  const environment = { ...ENVIRONMENT, SECRET_KEYS: keys, DATABASE_URL: place.databaseUrl ?? '' };
  const folders = [undefined, released.folder];
  const programs: Program[] = [];
  for (const folder of folders) programs.push(undo.use(await startProgram(environment, undefined, folder)));
  for (const [index, folder] of folders.entries()) {
    const argv = ['model', 'train', '--model', 'm', '--input', '-'];
    const run = await runTrivet(argv, { env: environment, input: LINES.join('\n'), folder });
    assert.equal(run.code, 0, run.stderr);
    const outcomes: string[] = [];
    for (const [reader, program] of programs.entries()) {
      const outcome = await waitUntilSettled(program, `m@${index + 1}`);
      t.diagnostic(`model ${index + 1} of ${describe(index)}: ${describe(reader)} ${outcome}`);
      outcomes.push(outcome);
    }
    const own = outcomes[index] ?? '';
    assert.match(own, /^serves it/, 'a program serves what it has trained itself');
    for (const outcome of outcomes) assert.ok(outcome === own || /^skips it: .{20,}/.test(outcome), outcome);
  }
  for (const program of programs) assert.equal(await program.stop(), 0);
});

function describe(index: number): string {
  return index === 0 ? 'this release' : 'the release before';
}
