/**
 * Two owners on one service. Everything of the first has a marker in its texts. The second calls every documented address, and opens
 * every page and sends every form that the first one finds: no answer has the marker, and nothing of the first changes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOrganization } from '../../src/authorization/accounts/organization-store.ts';
import { createUser, type User } from '../../src/authorization/accounts/user-store.ts';
import { createApplication } from '../../src/authorization/applications/application.ts';
import { API_SCOPES, type Scope } from '../../src/authorization/applications/scope.ts';
import { hashPassword } from '../../src/authorization/sign-in/password.ts';
import { createPersonalToken } from '../../src/authorization/tokens/personal-token.ts';
import { type Store, statement } from '../../src/database/store.ts';
import { isAdministratorScope } from '../../src/scopes.ts';
import { createSampleEvent } from '../../src/webhooks/events/sample-event.ts';
import { realWorld } from '../../src/world.ts';
import { waitUntil } from '../support/basics/wait-until.ts';
import { createFormClient, type FormClient } from '../support/network/form-client.ts';
import { startReceiver } from '../support/network/receiver.ts';
import { startProgram } from '../support/programs/start-program.ts';
import { createStorePlace, engines, findReasonToSkip, openTestStore } from '../support/store/engines.ts';

const MARKER = 'Zephyr';
const PASSWORD = 'correct horse battery staple';
/** All that a person who is no administrator can give a token. */
const ORDINARY: readonly Scope[] = API_SCOPES.filter((scope) => !isAdministratorScope(scope));

interface Tenant {
  readonly user: User;
  readonly token: string;
  readonly tokenId: string;
  readonly clientId: string;
  readonly pages: FormClient;
}

type Call = (token: string, method: string, path: string, json?: unknown) => Promise<{ status: number; text: string }>;

function createCall(baseUrl: string): Call {
  return async (token, method, path, json) => {
    const hasBody = method !== 'GET' && method !== 'HEAD';
    const response = await fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(hasBody && { 'content-type': 'application/json' }) },
      ...(hasBody && { body: JSON.stringify(json ?? {}) }),
    });
    return { status: response.status, text: await response.text() };
  };
}

interface Place {
  readonly store: Store;
  readonly baseUrl: string;
}

async function createTenant({ store, baseUrl }: Place, login: string, mark: string): Promise<Tenant> {
  const passwordHash = await hashPassword(PASSWORD);
  const profile = { login, name: `${login} ${mark}`, email: `${login}@${mark || 'plain'}.example`, isAdmin: false };
  const user = await createUser(store, realWorld, { ...profile, passwordHash });
  const form = { userId: user.id, name: `token ${mark}`, scopes: ORDINARY, expiresAtMs: undefined };
  const { secret, token } = await createPersonalToken(store, realWorld, form);
  const { application } = await createApplication(store, realWorld, {
    form: {
      name: `application ${mark}`,
      homepage: '',
      description: mark,
      redirectUris: [`https://app.example/callback/${mark}`],
      isPublic: false,
    },
    actor: { userId: user.id },
  });
  const pages = createFormClient(baseUrl);
  // Signed in elsewhere too, so that the page of the sessions has a form.
  for (const client of [createFormClient(baseUrl), pages])
    await client.submit('/sign-in', '/sign-in', { login, password: PASSWORD });
  return { user, token: secret, tokenId: token.tokenId, clientId: application.clientId, pages };
}

interface Repositories {
  readonly hookId: number;
  readonly deliveryId: string;
}

/** A private repository `owner/doors` with a webhook that has got an event. */
async function createRepository(call: Call, { user: { login }, token }: Tenant, url: string): Promise<Repositories> {
  const path = `/api/v5/repos/${login}/doors`;
  const secret = `the secret of ${login === 'grace' ? MARKER : login}`;
  const name = { name: 'doors', description: secret, private: true };
  assert.equal((await call(token, 'POST', '/api/v5/user/repos', name)).status, 201);
  const made = await call(token, 'POST', `${path}/hooks`, { url, password: secret });
  const hookId = (JSON.parse(made.text) as { id: number }).id;
  const event = createSampleEvent('push', { username: login, name: login }, 'main', Date.UTC(2026, 0, 1));
  assert.equal((await call(token, 'POST', `${path}/events`, event)).status, 202);
  assert.equal((await call(token, 'PUT', `${path}/bridges/github`, { secret })).status, 200);
  const deliveryId = await waitUntil(async () => {
    const { text } = await call(token, 'GET', `${path}/hooks/${hookId}/deliveries`);
    const [delivery] = JSON.parse(text) as { id: number; state: string }[];
    return delivery?.state === 'succeeded' ? String(delivery.id) : undefined;
  });
  return { hookId, deliveryId };
}

/** What an attack could change. `$1` is the id of the owner, `$2` that of the organization; columns that uses change are left out. */
const OWNED: readonly string[] = [
  `SELECT id, login, name, email, verified_email_key, is_admin, password_hash, epoch, disabled_at_ms, delegated_access, language
   FROM users WHERE id = $1 OR id = $2`,
  'SELECT * FROM repositories WHERE owner_id IN ($1, $2) ORDER BY id',
  `SELECT h.* FROM hooks h JOIN repositories r ON r.id = h.repository_id WHERE r.owner_id IN ($1, $2) ORDER BY h.id`,
  `SELECT b.* FROM bridge_secrets b JOIN repositories r ON r.id = b.repository_id WHERE r.owner_id IN ($1, $2)`,
  `SELECT d.* FROM deliveries d JOIN hooks h ON h.id = d.hook_id JOIN repositories r ON r.id = h.repository_id
   WHERE r.owner_id IN ($1, $2) ORDER BY d.id`,
  'SELECT * FROM applications WHERE owner_id IN ($1, $2) ORDER BY client_id',
  `SELECT s.client_id, s.slot, s.secret_hash FROM application_secrets s JOIN applications a ON a.client_id = s.client_id
   WHERE a.owner_id IN ($1, $2) ORDER BY s.client_id, s.slot`,
  'SELECT token_id, name, scope FROM personal_tokens WHERE user_id IN ($1, $2) ORDER BY token_id',
  'SELECT id FROM sessions WHERE user_id IN ($1, $2) ORDER BY id',
  'SELECT * FROM organization_members WHERE organization_id IN ($1, $2) ORDER BY user_id',
  'SELECT user_id FROM consents WHERE user_id IN ($1, $2)',
  'SELECT user_id FROM passkeys WHERE user_id IN ($1, $2)',
  'SELECT user_id FROM totp_secrets WHERE user_id IN ($1, $2)',
  'SELECT user_id FROM notice_choices WHERE user_id IN ($1, $2)',
];
const ownedSql = OWNED.map((text, index) => statement(`test-owned-${index}`, text));

async function readOwned(store: Store, ids: readonly string[]): Promise<unknown[]> {
  return await Promise.all(ownedSql.map((sql) => store.read(sql, ids)));
}

/** Every page that the links of pages lead to, and every form on them. */
async function exploreOwn(pages: FormClient) {
  const waiting = ['/'];
  const found = new Map<string, string>();
  while (waiting.length > 0) {
    const path = waiting.shift()!;
    if (found.has(path)) continue;
    const { status, body, headers } = await pages.get(path);
    found.set(path, status === 200 && headers.get('content-type')?.startsWith('text/html') ? body : '');
    for (const [, link = ''] of (found.get(path) ?? '').matchAll(/(?:href|data-live)="(\/[^"#]*)"/g))
      waiting.push(link.replaceAll('&amp;', '&'));
  }
  return [...found].map(([path, body]) => ({ path, forms: listForms(body) }));
}

function listForms(body: string) {
  return [...body.matchAll(/<form method="post" action="([^"]+)"[^>]*>(.*?)<\/form>/gs)].map(
    ([, action = '', inner = '']) => ({
      action: action.replaceAll('&amp;', '&'),
      fields: Object.fromEntries(
        [...inner.matchAll(/<(?:input|button)[^>]* name="([^"]+)"[^>]*?(?: value="([^"]*)")?[^>]*>/g)].map(
          ([, name = '', value = '']) => [name, value],
        ),
      ),
    }),
  );
}

function fillPath(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    assert.ok(value !== undefined, `the test has no value for {${name}} of ${path}`);
    return value;
  });
}

for (const engine of engines)
  test(`an owner neither reads nor changes what is another owner's (${engine})`, {
    skip: findReasonToSkip(engine),
    timeout: 180_000,
  }, async (t) => {
    await using receiver = await startReceiver();
    const place = await createStorePlace(engine);
    const { dataDir, databaseUrl } = place;
    const environment = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
    const settings = { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', SECRET_KEYS: Buffer.alloc(32, 7).toString('base64') };
    await using program = await startProgram({ ...environment, ...settings, LOG_LEVEL: 'error' }, dataDir);
    await using store = await openTestStore(place);
    const call = createCall(program.httpUrl);
    const at = { store, baseUrl: program.httpUrl };
    const grace = await createTenant(at, 'grace', MARKER);
    const mallory = await createTenant(at, 'mallory', '');
    const sea = { login: 'sea', name: `Sea of ${MARKER}`, ownerId: grace.user.id };
    const { id: organizationId } = await createOrganization(store, realWorld, sea);
    const url = `${receiver.url}/${MARKER}`;
    const { hookId, deliveryId } = await createRepository(call, grace, url);
    await createRepository(call, mallory, receiver.url);
    const inOrganization = { name: 'harbour', description: MARKER, private: true };
    assert.equal((await call(grace.token, 'POST', '/api/v5/orgs/sea/repos', inOrganization)).status, 201);
    const ids = [grace.user.id, organizationId];
    const before = await readOwned(store, ids);

    const common = {
      target_model: 'm',
      id: String(hookId),
      delivery: deliveryId,
      delivery_id: deliveryId,
      client_id: grace.clientId,
      clientId: grace.clientId,
      slot: '1',
      login: 'grace',
      tokenId: grace.tokenId,
      org: 'sea',
      organization: 'sea',
      host: 'github',
    };
    const targets = [
      { ...common, owner: 'grace', repo: 'doors', name: 'doors' },
      { ...common, owner: 'sea', repo: 'harbour', name: 'harbour' },
      // The own repository with ids of the other owner.
      { ...common, owner: 'mallory', repo: 'doors', name: 'doors' },
      { ...common, owner: 'grace', repo: 'doors', name: 'doors', id: grace.tokenId },
    ];
    const { paths } = (await (await fetch(`${program.httpUrl}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, unknown>>;
    };
    const isOwn = (path: string) => /^\/api\/v5\/repos\/mallory\/doors(\/(hooks|events|bridges.*))?$/.test(path);
    let calls = 0;
    for (const [template, methods] of Object.entries(paths))
      for (const method of Object.keys(methods).map((name) => name.toUpperCase()))
        for (const path of new Set(targets.map((values) => fillPath(template, values)))) {
          // Deleting the own repository would make the others of it 404 for another reason.
          if (isOwn(path) && method === 'DELETE') continue;
          const { status, text } = await call(mallory.token, method, path, { login: 'grace', owner: 'grace' });
          calls += 1;
          if (isOwn(path)) continue;
          assert.ok(!text.includes(MARKER), `${method} ${path}: ${status} ${text}`);
          const isOfOther = template.includes('{') && !template.startsWith('/llm-d/');
          if (isOfOther) assert.ok(status >= 400 && status < 500, `${method} ${path}: ${status}`);
        }
    assert.deepEqual(await readOwned(store, ids), before, 'by the API');

    const own = await exploreOwn(grace.pages);
    const csrf = listForms((await mallory.pages.get('/account')).body).find(({ fields }) => fields.csrf_token)?.fields;
    assert.ok(csrf?.csrf_token, 'a form of the other owner');
    let forms = 0;
    for (const { path, forms: found } of own) {
      if (/^\/(sign-out|metrics|assets)/.test(path)) continue;
      const shown = await mallory.pages.get(path);
      assert.ok(!shown.body.includes(MARKER), `GET ${path}`);
      const live = await fetch(program.httpUrl + path, { headers: { accept: 'text/event-stream' } });
      assert.ok(!(await live.text()).includes(MARKER), `GET ${path} as a live page, signed out`);
      for (const { action, fields } of found) {
        if (action === '/sign-out' || action === '/account/password') continue;
        forms += 1;
        const answer = await mallory.pages.post(action, { ...fields, csrf_token: csrf.csrf_token });
        const { body } = await mallory.pages.readOutcome(answer);
        assert.ok(!body.includes(MARKER), `POST ${action}`);
      }
    }
    assert.deepEqual(await readOwned(store, ids), before, 'by forms');
    assert.ok(
      own.some(({ path }) => path.startsWith(`/webhooks/grace/doors/${hookId}`)),
      own.map(({ path }) => path).join(' '),
    );
    t.diagnostic(`${calls} calls, ${own.length} pages, ${forms} forms`);
  });
