/** A client generated from docs/reference/openapi.json calls every operation of the real program; each answer is as described. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type ApiClient, createApiClient } from '../support/api/api-client.ts';
import { checkAnswer, type DescribedOperation, describedOperations, type Node } from '../support/api/api-document.ts';
import { giveSecondStep } from '../support/authorization/second-step.ts';
import { createFormClient } from '../support/network/form-client.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { createDataDir, type Program, startProgram } from '../support/programs/start-program.ts';
import { openTestStore } from '../support/store/engines.ts';
import { callAllApplications, callModels, callOrganizations, callPeople } from './calls/administration-calls.ts';
import { callOAuth, callUser } from './calls/authorization-calls.ts';
import type { Calls } from './calls/calls.ts';
import { callLlmD, callPrediction } from './calls/prediction-calls.ts';
import { callAllRepositories, callOwnRepositories } from './calls/webhook-calls.ts';

const PASSWORD = 'correct horse battery';
const SETTINGS = {
  PREDICTION_LEARNING: 'off',
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  PREDICTION_TRACES_KV_CAPACITY_TOKENS: '100000',
};
/** People and organizations first: others need them. */
const LISTS: readonly ((calls: Calls) => Promise<void>)[] = [
  callPeople,
  callOrganizations,
  callUser,
  callOAuth,
  callOwnRepositories,
  callAllRepositories,
  callAllApplications,
  callModels,
  callPrediction,
  callLlmD,
];

test('the document describes every answer of every operation', async (t) => {
  const dataDir = createDataDir();
  await using program = await startProgram({ ...SETTINGS }, dataDir);
  await using receiver = await startReceiver();
  const { token, trace } = await prepare(dataDir);
  const browser = createFormClient(program.httpUrl);
  await browser.submit('/sign-in', '/sign-in', { login: 'root', password: PASSWORD });
  const { api, called }: ApiClient = createApiClient(program.httpUrl, token);
  for (const call of LISTS) await t.test(call.name, () => call({ api, browser, trace, receiverUrl: receiver.url }));
  const left = describedOperations.filter(({ operationId }) => !called.has(operationId));
  assert.deepEqual(
    left.map(({ operationId }) => operationId),
    [],
    'not called',
  );
});

test('every operation with security refuses a caller who proves nothing, as described, and no other does', async () => {
  const dataDir = createDataDir();
  await using program = await startProgram({ ...SETTINGS }, dataDir);
  await prepare(dataDir);
  for (const operation of describedOperations) {
    const isOpen = operation.item.security.some((one: Node) => Object.keys(one).length === 0);
    for (const authorization of [undefined, 'Bearer made-up']) {
      const response = await callBare(program, operation, authorization);
      const place = `${operation.operationId} ${response.status}`;
      if (isOpen && authorization === undefined) assert.notEqual(response.status, 401, place);
      if (!isOpen) {
        assert.equal(response.status, 401, place);
        assert.match(response.headers.get('www-authenticate') ?? '', /^(Bearer|Basic) /, place);
      }
      await checkAnswer(operation, response);
    }
  }
});

/** With the examples of the document, but without what proves a caller. */
async function callBare(
  { httpUrl }: Program,
  { method, path, item }: DescribedOperation,
  authorization: string | undefined,
): Promise<Response> {
  const query = new URLSearchParams();
  for (const { name, in: place, required, schema, example } of item.parameters ?? [])
    if (place === 'query' && required) query.set(name, String(example ?? schema?.example ?? 1));
  const [type = '', media = {}] = Object.entries<Node>(item.requestBody?.content ?? {})[0] ?? [];
  const { client_secret: _, ...form } = { ...media.example, client_id: 'trivet-cli' };
  const body = type.includes('urlencoded') ? new URLSearchParams(form).toString() : JSON.stringify(media.example);
  const url = `${httpUrl}${path.replace(/\{\w+\}/g, '1')}?${query.toString()}`;
  const headers = { ...(type === '' ? {} : { 'content-type': type }), ...(authorization && { authorization }) };
  return fetch(url, { method, redirect: 'manual', headers, ...(type === '' ? {} : { body }) });
}

/** The administrator root, linus with a second step, and two versions of the model m. */
async function prepare(dataDir: string): Promise<{ readonly token: string; readonly trace: Uint8Array }> {
  const run = async (argv: readonly string[], input = '') => {
    const { code, stdout, stderr } = await runTrivet(argv, { env: { TRIVET_DATA_DIR: dataDir }, input });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const trace = join(dataDir, 'trace.jsonl');
  const simulated = ['--servers', 'medium:1', '--duration', '60', '--rate', '5', '--output', trace];
  await run(['simulate', ...simulated]);
  await run(['user', 'create', '--login', 'root', '--name', 'Root', '--admin', '--password-stdin'], `${PASSWORD}\n`);
  await run(['user', 'create', '--login', 'linus', '--name', 'Linus']);
  {
    await using store = await openTestStore({ dataDir, databaseUrl: undefined });
    await giveSecondStep(store, 'linus');
  }
  for (let version = 1; version <= 2; version += 1)
    await run(['model', 'train', '--model', 'm', '--input', trace, '--any-model', '--promote', String(version === 1)]);
  const scopes = ['all_user', 'all_projects', 'all_hook', 'admin', 'events:write'];
  const token = await run(['token', 'create', '--user', 'root', '--name', 'all', '--scope', ...scopes]);
  return { token, trace: readFileSync(trace) };
}
