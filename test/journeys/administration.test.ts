/** Calls every operation of the administration API once over HTTP, with a real token, on both engines. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type Answered, checkProblems, checkScopes, type Sent, send } from '../support/api/administration-checks.ts';
import { giveSecondStep } from '../support/authorization/second-step.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { runTrivet } from '../support/programs/run-trivet.ts';
import { type Program, startProgram } from '../support/programs/start-program.ts';
import {
  createStorePlace,
  engines,
  findReasonToSkip,
  openTestStore,
  type StorePlace,
} from '../support/store/engines.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-administration-'));
after(() => rmSync(folder, { recursive: true }));

for (const engine of engines)
  test(`every operation answers an administrator’s token (${engine})`, { skip: findReasonToSkip(engine) }, async () => {
    const place = await createStorePlace(engine);
    try {
      await checkOperations(place);
    } finally {
      rmSync(place.dataDir, { recursive: true, force: true });
    }
  });

async function checkOperations(place: StorePlace): Promise<void> {
  const { dataDir, databaseUrl } = place;
  const env = { TRIVET_DATA_DIR: dataDir, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) };
  const settings = { PREDICTION_LEARNING: 'off', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' };
  await using program = await startProgram({ ...env, ...settings }, dataDir);
  const trivet: RunCommand = async (...argv) => {
    const run = await runTrivet(argv, { env });
    assert.equal(run.code, 0, run.stderr);
    return run.stdout.trim();
  };
  const trace = join(folder, `${databaseUrl === undefined ? 'sqlite' : 'postgres'}.jsonl`);
  await prepareStore(trivet, trace);
  const make = (...scope: string[]) => trivet('token', 'create', '--user', 'root', '--name', 't', '--scope', ...scope);
  const token = await make('admin', 'events:write');
  const called = new Set<string>();
  const ok: CallOperation = async (operation, call, sent = {}) => {
    called.add(operation);
    const { status, body } = await send(program, call, { ...sent, token });
    assert.equal(status, 200, `${call}: ${JSON.stringify(body)}`);
    return body;
  };

  await checkPeople(ok, place);
  await checkPasswordLinks(ok, { program, token, trivet });
  await checkOrganizations(ok);
  await checkModels(ok, { program, token, trace });
  await checkHooksOfAll(ok);
  await checkWebhooks(ok);
  await checkApplications(ok);
  await checkAudit(ok);
  await checkTokens(ok, () => make('predict'));
  await checkPages(program, token);
  await checkProblems(program, token);
  await checkScopes(program, { called, make, token });
}

type CallOperation = (operation: string, call: string, sent?: Omit<Sent, 'token'>) => Promise<Answered['body']>;
type RunCommand = (...argv: string[]) => Promise<string>;

/** An administrator, a repository with a webhook, and two versions of a model, of which the first is served. */
async function prepareStore(trivet: RunCommand, trace: string): Promise<void> {
  await trivet('simulate', '--servers', 'medium:1', '--duration', '60', '--rate', '5', '--output', trace);
  await trivet('user', 'create', '--login', 'root', '--name', 'Root', '--admin');
  await trivet('repo', 'create', 'root/doors');
  await trivet('hook', 'create', 'root/doors', '--url', 'https://1.1.1.1/', '--password', 'sesame');
  for (const promoted of ['true', 'false'])
    await trivet('model', 'train', '--model', 'org/m', '--input', trace, '--any-model', '--promote', promoted);
}

async function checkPeople(ok: CallOperation, place: StorePlace): Promise<void> {
  const person = { login: 'ada', name: 'Ada', email: 'ada@example.org', password: 'correct horse battery' };
  assert.equal((await ok('createPerson', 'POST /people', { json: person })).isEmailVerified, true);
  assert.equal((await ok('listPeople', 'GET /people?limit=1')).next, 'ada');
  assert.deepEqual((await ok('listPeople', 'GET /people?state=admin')).people.map(loginOf), ['root']);
  assert.equal((await ok('showPerson', 'GET /people/ada')).name, 'Ada');
  await ok('setEmail', 'PUT /people/ada/email', { json: { email: 'ada2@example.org' } });
  await ok('resetPassword', 'PUT /people/ada/password', { json: { password: 'another horse battery' } });
  {
    await using store = await openTestStore(place);
    await giveSecondStep(store, 'ada');
  }
  await ok('resetSecondStep', 'DELETE /people/ada/second-step');
  await ok('disablePerson', 'POST /people/ada/disable', { json: {} });
  assert.deepEqual((await ok('listPeople', 'GET /people?state=disabled')).people.map(loginOf), ['ada']);
  await ok('enablePerson', 'POST /people/ada/enable');
  const promoted = await ok('setAdministrator', 'PUT /people/ada/admin', { json: { isAdmin: true } });
  assert.deepEqual(promoted, { login: 'ada', endedAccess: false });
}

interface LinkCheck {
  readonly program: Program;
  readonly token: string;
  readonly trivet: RunCommand;
}

async function checkPasswordLinks(ok: CallOperation, { program, token, trivet }: LinkCheck): Promise<void> {
  const invitation = await ok('invitePerson', 'POST /invitations', { json: { login: 'joan', name: 'Joan' } });
  const page = await fetch(invitation.link.replace(/^https?:\/\/[^/]+/, program.httpUrl));
  assert.deepEqual([page.status, /joan/.test(await page.text())], [200, true]);
  const again = await ok('createPasswordLink', 'POST /people/joan/password-link', { json: {} });
  assert.notEqual(again.link, invitation.link);
  for (const words of [
    ['invite', '--login', 'alan', '--name', 'Alan'],
    ['password-link', 'alan'],
  ])
    assert.match(await trivet('user', ...words), /^http:\/\/\S+\/password\?token=\S+$/);
  const mailed = await send(program, 'POST /people/joan/password-link', { token, json: { sendMail: true } });
  assert.deepEqual([mailed.status, mailed.body.detail], [409, 'Cannot send the link: this service sends no mail']);
}

async function checkOrganizations(ok: CallOperation): Promise<void> {
  await ok('createOrganization', 'POST /organizations', { json: { login: 'acme', owner: 'root' } });
  assert.equal((await ok('listOrganizations', 'GET /organizations')).organizations[0].login, 'acme');
  await ok('setMember', 'PUT /organizations/acme/members/ada', { json: { role: 'owner' } });
  assert.equal((await ok('listMembers', 'GET /organizations/acme/members')).members.length, 2);
  await ok('removeMember', 'DELETE /organizations/acme/members/ada');
}

interface ModelCheck {
  readonly program: Program;
  readonly token: string;
  readonly trace: string;
}

async function checkModels(ok: CallOperation, { program, token, trace }: ModelCheck): Promise<void> {
  const versions = await ok('listModelVersions', 'GET /models?limit=1');
  assert.deepEqual([versions.versions[0].id, versions.next], ['org/m@2', 'org/m@2']);
  assert.equal((await ok('listModelVersions', 'GET /models?after=org/m@2')).versions[0].id, 'org/m@1');
  assert.equal((await ok('showModelVersion', 'GET /models/version?id=org/m')).id, 'org/m@1');
  const comparison = await ok('compareModelVersions', 'GET /models/compare?id=org/m@2');
  assert.deepEqual([comparison.id, comparison.otherId, comparison.rows], ['org/m@2', 'org/m@1', 0]);
  const accuracy = await ok('readModelAccuracy', 'GET /models/accuracy?model=org/m');
  assert.deepEqual([accuracy.model, accuracy.stepMs, accuracy.series], ['org/m', 300_000, []]);
  const unclear = await send(program, 'GET /models/compare?id=org/m', { token });
  assert.deepEqual(
    [unclear.status, unclear.body.detail],
    [400, 'Cannot compare "org/m": say which version, as org/m@1'],
  );
  const file = await ok('exportModelVersion', 'GET /models/file?id=org/m@2');
  assert.ok(file.length > 1000);
  const promotion = await ok('promoteModelVersion', 'POST /models/promote', { json: { id: 'org/m@2' } });
  assert.deepEqual(promotion, { id: 'org/m@2', changed: true });
  const rollback = await ok('rollBackModel', 'POST /models/rollback', { json: { model: 'org/m' } });
  assert.deepEqual(rollback, { id: 'org/m@1', from: 'org/m@2' });
  const imported = await ok('importModelVersion', 'POST /models/import?model=copy&promote=false', { file });
  assert.deepEqual(imported, { id: 'copy@1', promoted: false });
  const rows = { file: new Uint8Array(readFileSync(trace)) };
  const evaluation = await ok('evaluateObservations', 'POST /models/evaluate?protocol=time', rows);
  assert.ok(evaluation.ttft.rows > 10 && evaluation.ttft.mape > 0);
}

async function checkHooksOfAll(ok: CallOperation): Promise<void> {
  const { hooks } = await ok('listAllHooks', 'GET /hooks?repository=root/doors&state=on');
  const { id } = hooks[0];
  assert.equal((await ok('disableAnyHook', `POST /hooks/${id}/disable`, { json: {} })).active, false);
  assert.equal((await ok('enableAnyHook', `POST /hooks/${id}/enable`, { json: {} })).active, true);
  const hook = await ok('showAnyHook', `GET /hooks/${id}`);
  assert.equal(hook.repository, 'root/doors');
  assert.doesNotMatch(JSON.stringify([hook, hooks]), /sesame/);
}

/** Every change by the checks before is in the audit log. */
async function checkAudit(ok: CallOperation): Promise<void> {
  const { events } = await ok('searchAudit', 'GET /audit?by=root&limit=200');
  const kinds = events.map((event: { kind: string }) => event.kind).reverse();
  const changes = kinds.filter((kind: string) => kind !== 'personal_token_created' && kind !== 'user_created');
  assert.deepEqual(changes.slice(0, IN_ORDER.length), IN_ORDER);
  assert.deepEqual(changes.slice(IN_ORDER.length).sort(), IN_ANY_ORDER);
}

async function checkTokens(ok: CallOperation, makeToken: () => Promise<string>): Promise<void> {
  await makeToken();
  const { tokens } = await ok('listTokensOfPerson', 'GET /people/root/tokens');
  assert.deepEqual(tokens[0].scopes, ['predict']);
  await ok('revokeTokenOfPerson', `DELETE /people/root/tokens/${tokens[0].tokenId}`);
  assert.equal((await ok('listTokensOfPerson', 'GET /people/root/tokens')).tokens.length, tokens.length - 1);
}

/** A repository and a webhook from their creation to their end. */
async function checkWebhooks(ok: CallOperation): Promise<void> {
  await using receiver = await startReceiver((_, response) => void response.writeHead(500).end('not now'));
  const windows = { owner: 'root', name: 'windows', path: 'windows', private: true };
  assert.equal((await ok('createAnyRepository', 'POST /repositories', { json: windows })).full_name, 'root/windows');
  const listed = await ok('listAllRepositories', 'GET /repositories?owner=root&limit=1');
  assert.deepEqual([listed.repositories[0].full_name, listed.next], ['root/doors', listed.repositories[0].id]);
  assert.equal((await ok('showAnyRepository', 'GET /repositories/root/windows')).private, true);
  const given = { repository: 'root/windows', url: receiver.url, password: 'sesame' };
  const hook = await ok('createAnyHook', 'POST /hooks', { json: given });
  const path = `/hooks/${hook.id}`;
  const changed = await ok('updateAnyHook', `PATCH ${path}`, { json: { issues_events: true, password: 'open' } });
  assert.deepEqual([changed.push_events, changed.issues_events, changed.url], [true, true, receiver.url]);
  const published = await ok('announceAnyEvent', 'POST /repositories/root/windows/events', {
    json: { sample: 'push' },
  });
  assert.equal(published.deliveries.length, 1);
  const [{ id: delivery }] = published.deliveries;
  const tested = await ok('testAnyHook', `POST ${path}/test`, { json: {} });
  assert.deepEqual([tested.accepted, tested.attempt.status_code], [false, 500]);
  assert.match(tested.attempt.response_body, /not now/);
  const again = await ok('redeliverAny', `POST ${path}/deliveries/${tested.delivery}/redeliver`, { json: {} });
  assert.deepEqual([again.delivery, again.accepted], [tested.delivery, false]);
  const page = await ok('listAnyDeliveries', `GET ${path}/deliveries?status_code=5xx&per_page=1`);
  assert.deepEqual([page.deliveries.length, page.next], [1, page.deliveries[0].id]);
  const detail = await ok('showAnyDelivery', `GET ${path}/deliveries/${delivery}?repository=root/windows`);
  assert.equal(detail.id, delivery);
  assert.equal((await ok('sendWaitingOfAnyHook', `POST ${path}/send-waiting`, { json: {} })).id, hook.id);
  const since = { since: '2026-01-01T00:00:00Z' };
  assert.equal((await ok('replayAnyHook', `POST ${path}/replay`, { json: since })).id, hook.id);
  assert.doesNotMatch(JSON.stringify([hook, changed]), /sesame|open"/);
  assert.deepEqual(await ok('deleteAnyHook', `DELETE ${path}`), { id: hook.id, repository: 'root/windows' });
  assert.equal((await ok('deleteAnyRepository', 'DELETE /repositories/root/windows')).full_name, 'root/windows');
}

/** An application from its registration to its end, with its secrets in one answer each; and the keys it relies on. */
async function checkApplications(ok: CallOperation): Promise<void> {
  const form = { name: 'Board', owner: 'root', redirectUris: ['https://board.example/cb'] };
  const made = await ok('createAnyApplication', 'POST /applications', { json: form });
  assert.match(made.client_secret, /^tvt_s_/);
  const path = `/applications/${made.client_id}`;
  const { client_secret: second } = await ok('addAnyApplicationSecret', `POST ${path}/secrets`, { json: {} });
  const shown = await ok('showAnyApplication', `GET ${path}`);
  assert.deepEqual([shown.name, shown.secrets.length], ['Board', 2]);
  const listed = await ok('listAllApplications', 'GET /applications');
  assert.ok(listed.applications.some((one: { clientId: string }) => one.clientId === made.client_id));
  for (const answer of [shown, listed])
    for (const secret of [made.client_secret, second]) assert.ok(!JSON.stringify(answer).includes(secret));
  assert.equal((await ok('removeAnyApplicationSecret', `DELETE ${path}/secrets/1`)).slot, 1);
  await ok('disableAnyApplication', `POST ${path}/disable`, { json: {} });
  assert.ok((await ok('showAnyApplication', `GET ${path}`)).disabledAtMs > 0);
  await ok('enableAnyApplication', `POST ${path}/enable`, { json: {} });
  assert.deepEqual(await ok('deleteAnyApplication', `DELETE ${path}`), { clientId: made.client_id });
  const { kid } = await ok('replaceSigningKeys', 'POST /signing-keys/replace', { json: {} });
  const { keys } = await ok('listSigningKeys', 'GET /signing-keys');
  assert.deepEqual([keys.length, keys[0].kid, keys[0].isSigning], [1, kid, true]);
}

const IN_ORDER = [
  'user_changed',
  'password_changed',
  'totp_disabled',
  'user_disabled',
  'user_enabled',
  'administrator_added',
  'user_invited',
  'password_link_created',
  'organization_created',
  'organization_changed',
  'organization_changed',
  'model_promoted',
  'model_rolled_back',
  'model_imported',
  'hook_disabled',
  'hook_enabled',
];
/** Several entries of one call have the same time. */
const IN_ANY_ORDER = [
  'application_created',
  'application_deleted',
  'application_disabled',
  'application_enabled',
  'application_secret_added',
  'application_secret_added',
  'application_secret_removed',
  'hook_changed',
  'hook_created',
  'hook_deleted',
  'hook_key_changed',
  'repository_created',
  'repository_deleted',
  'signing_keys_replaced',
];

function loginOf({ login }: { readonly login: string }): string {
  return login;
}

/** The audit log by pages of two is the same as at once. */
async function checkPages(program: Program, token: string): Promise<void> {
  const read = async (query: string) => (await send(program, `GET /audit?${query}`, { token })).body;
  const all = (await read('limit=200')).events.map((event: { id: string }) => event.id);
  const paged: string[] = [];
  for (let next = ''; ; ) {
    const page = await read(`limit=2${next}`);
    paged.push(...page.events.map((event: { id: string }) => event.id));
    if (page.next === null) break;
    next = `&before=${page.next}`;
  }
  assert.deepEqual(paged, all);
  assert.equal((await read('kind=model_imported')).events.length, 1);
  assert.equal((await read('since=2999-01-01T00:00:00Z')).events.length, 0);
}
