/** A caller without credentials can add only a bounded number of rows to the database. */
import assert from 'node:assert/strict';
import {
  type AuthorizationServer,
  basic,
  postForm,
  registerApplication,
  startAuthorizationServer,
} from '../../../test/support/authorization/authorization-server.ts';
import { createStillWorld } from '../../../test/support/basics/still-world.ts';
import { createFormClient } from '../../../test/support/network/form-client.ts';
import { forEachEngine } from '../../../test/support/store/engines.ts';
import { type Store, statement } from '../../database/store.ts';
import { auditStatement, listEvents } from '../accounts/audit-store.ts';
import { createRefusalLog, REFUSALS_AN_HOUR } from '../accounts/refusal-log.ts';
import { sweepEnded } from '../maintenance/retention-store.ts';

const DAY_MS = 86_400_000;

const countEventsSql = statement<{ rows: number }>('test-count-events', 'SELECT COUNT(*) AS rows FROM audit_events');
const countOneTimeTokensSql = statement<{ rows: number }>('test-count-tickets', 'SELECT COUNT(*) AS rows FROM tickets');

async function count(store: Store, counting: typeof countEventsSql): Promise<number> {
  return (await store.read(counting))[0]?.rows ?? 0;
}

/** Sends several at a time, as in a flood. */
async function repeat(times: number, act: (index: number) => Promise<unknown>): Promise<void> {
  for (let start = 0; start < times; start += 20)
    await Promise.all(Array.from({ length: Math.min(20, times - start) }, (_, offset) => act(start + offset)));
}

async function openSignIn(server: AuthorizationServer, address: string) {
  const client = createFormClient(server.url, undefined, { 'x-forwarded-for': address });
  const page = await client.get('/sign-in');
  const csrf_token = /name="csrf_token" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
  return { client, csrf_token };
}

forEachEngine('passkeys that are not accepted are throttled like passwords', async (store) => {
  await using server = await startAuthorizationServer(store, { isStill: true });
  const { client, csrf_token } = await openSignIn(server, '192.0.2.1');
  const credential = JSON.stringify({ id: 'made-up', response: {} });
  const statuses = new Map<number, number>();
  await repeat(200, async () => {
    const { status } = await client.readOutcome(
      client.post('/sign-in/passkey', { csrf_token, ticket: 'none', credential }),
    );
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  });
  assert.deepEqual(Object.fromEntries(statuses), { 303: 30, 429: 170 });
  assert.equal(await count(store, countEventsSql), 30);
});

forEachEngine('one network begins at most 300 passkey sign-ins at once', async (store) => {
  await using server = await startAuthorizationServer(store, { isStill: true });
  const { client, csrf_token } = await openSignIn(server, '192.0.2.1');
  await repeat(320, () => client.post('/sign-in/passkey/options', { csrf_token }));
  assert.equal(await count(store, countOneTimeTokensSql), 300);
});

forEachEngine('one site begins at most 600 device connections a minute, from however many networks', async (store) => {
  await using server = await startAuthorizationServer(store, { isStill: true });
  const { clientId } = await registerApplication(server, { isPublic: true, grantTypes: ['device_code'] });
  const statuses = new Map<number, number>();
  await repeat(620, async (index) => {
    const headers = { 'x-forwarded-for': `2001:db8:1:${index.toString(16)}::1` };
    const { status } = await postForm(`${server.url}/oauth/device`, { client_id: clientId }, headers);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  });
  assert.deepEqual(Object.fromEntries(statuses), { 200: 600, 429: 20 });
});

forEachEngine('one network leaves at most a hundred refusals an hour, whatever it is refused for', async (store) => {
  await using server = await startAuthorizationServer(store, { isStill: true });
  const { clientId } = await registerApplication(server);
  const before = await count(store, countEventsSql);
  await repeat(300, (index) => {
    const id = index % 2 === 0 ? clientId : `app_unknown${index}`;
    // Each from another /64, since the limit of wrong secrets counts by network.
    const headers = { ...basic(id, 'wrong'), 'x-forwarded-for': `2001:db8:1:${index.toString(16)}::1` };
    return postForm(`${server.url}/oauth/token`, { grant_type: 'client_credentials' }, headers);
  });
  assert.equal((await count(store, countEventsSql)) - before, REFUSALS_AN_HOUR.ofNetwork);
});

forEachEngine(
  'what a stranger calls a client is recorded without characters that turn or hide the text around it',
  async (store) => {
    await using server = await startAuthorizationServer(store);
    const fields = { client_id: '\u202eroot \u200b\u009b1m', client_secret: 'x', grant_type: 'refresh_token' };
    assert.equal((await postForm(`${server.url}/oauth/token`, fields)).status, 401);
    const [event] = await listEvents(store, { limit: 1 });
    assert.deepEqual([event?.kind, event?.clientId], ['client_authentication_failed', '?root???1m']);
  },
);

forEachEngine(
  'all networks together leave a bounded number of refusals, and the next event counts the rest',
  async (store) => {
    const refusals = createRefusalLog({ store, world: createStillWorld() });
    const record = (index: number) =>
      refusals.record({ kind: 'sign_in_failed', address: `10.0.${index >> 8}.${index & 255}` });
    await repeat(REFUSALS_AN_HOUR.ofAll + 100, record);
    assert.equal(await count(store, countEventsSql), REFUSALS_AN_HOUR.ofAll);
  },
);

forEachEngine('a refusal that is written says how many were not', async (store) => {
  const refusals = createRefusalLog({ store, world: createStillWorld() });
  await repeat(REFUSALS_AN_HOUR.ofNetwork + 3, () => refusals.record({ kind: 'sign_in_failed', address: '10.0.0.1' }));
  await refusals.record({ kind: 'sign_in_failed', address: '10.0.0.2' });
  const events = await listEvents(store, { limit: 1000 });
  assert.deepEqual(events.map(({ details }) => details?.not_recorded).filter(Boolean), [3]);
});

forEachEngine('events older than the retention are removed, younger ones stay', async (store) => {
  const nowMs = 1000 * DAY_MS;
  const at = (atMs: number) => auditStatement({ kind: 'sign_in_failed' }, atMs);
  await store.writeAll([...Array.from({ length: 1200 }, () => at(nowMs - 366 * DAY_MS)), at(nowMs - 364 * DAY_MS)]);
  await sweepEnded(store, { nowMs, auditDays: 365 });
  assert.equal(await count(store, countEventsSql), 1);
});

/** Records the statements of a store in their order. */
function watchStatements(store: Store): { readonly watched: Store; readonly take: () => string[] } {
  let names: string[] = [];
  const record = <Result>(name: string, result: Result): Result => {
    names.push(name);
    return result;
  };
  const watched: Store = {
    ...store,
    read: (asked, parameters) => record(`read ${asked.name}`, store.read(asked, parameters)),
    readCached: (asked, parameters) => record(`readCached ${asked.name}`, store.readCached(asked, parameters)),
    write: (asked, parameters) => record(`write ${asked.name}`, store.write(asked, parameters)),
    writeAll: (statements) =>
      record(`write ${statements.map((step) => step.statement.name).join()}`, store.writeAll(statements)),
  };
  const take = () => {
    const taken = names;
    names = [];
    return taken;
  };
  return { watched, take };
}

forEachEngine('a wrong secret costs the same work at a known client as at an unknown one', async (store) => {
  const { watched, take } = watchStatements(store);
  await using server = await startAuthorizationServer(watched);
  const { clientId } = await registerApplication(server);
  const workOf = async (id: string) => {
    take();
    const headers = basic(id, 'wrong');
    const answer = await postForm(`${server.url}/oauth/token`, { grant_type: 'client_credentials' }, headers);
    return { status: answer.status, text: answer.text, work: take() };
  };
  const known = await workOf(clientId);
  assert.deepEqual(known, await workOf('app_unknown'));
  assert.deepEqual(known.work, ['readCached client-credentials', 'write insert-audit-event']);
});
