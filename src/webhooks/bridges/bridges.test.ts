import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { isFailure } from '../../errors.ts';
import { eventSchema, foreignEventSchema } from '../events/event.ts';
import { LIMITS } from '../events/event-limits.ts';
import type { Json, ReadHeader } from './bridge.ts';
import { findBridge, translateWebhook } from './bridges.ts';

const fixtures = new URL('fixtures/', import.meta.url);
const pairs = globSync('*/*.json', { cwd: fixtures }).filter((path) => !path.endsWith('.event.json'));

function readJson(path: string): Json {
  return JSON.parse(readFileSync(new URL(path, fixtures), 'utf8'));
}

function readHeaderOf(headers: Record<string, string>): ReadHeader {
  return (name) => headers[name];
}

test('there are pairs for every bridge', () => {
  assert.deepEqual([...new Set(pairs.map((path) => dirname(path)))].sort(), ['gitea', 'github', 'gitlab']);
});

for (const path of pairs)
  test(`${path} becomes its event`, () => {
    const { headers, payload } = readJson(path);
    const found = findBridge(readHeaderOf(headers));
    assert.equal(found?.name, dirname(path));
    const event = eventSchema.parse(found?.bridge.translate(readHeaderOf(headers), payload));
    assert.deepEqual(event, readJson(path.replace('.json', '.event.json')));
  });

const SECRET = Buffer.from('a secret of a bridge');
const BODY = Buffer.from('{"some":"body"}');
const hex = createHmac('sha256', SECRET).update(BODY).digest('hex');

const PROOFS: [title: string, headers: Record<string, string>, isAccepted: boolean][] = [
  ['github with its signature', { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${hex}` }, true],
  ['github with another', { 'x-github-event': 'push', 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` }, false],
  ['github with an empty one', { 'x-github-event': 'push', 'x-hub-signature-256': 'sha256=' }, false],
  ['github without', { 'x-github-event': 'push' }, false],
  ['gitea with its signature', { 'x-gitea-event': 'push', 'x-gitea-signature': hex }, true],
  ['gitea with an empty one', { 'x-gitea-event': 'push', 'x-gitea-signature': '' }, false],
  ['forgejo with its signature', { 'x-forgejo-event': 'push', 'x-forgejo-signature': hex }, true],
  ['gitlab with its token', { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': SECRET.toString() }, true],
  ['gitlab with another', { 'x-gitlab-event': 'Push Hook', 'x-gitlab-token': 'a secret of a bridgf' }, false],
  ['gitlab without', { 'x-gitlab-event': 'Push Hook' }, false],
];

for (const [title, headers, isAccepted] of PROOFS)
  test(`${title} is ${isAccepted ? 'accepted' : 'refused'}`, () => {
    const found = findBridge(readHeaderOf(headers));
    assert.equal(found?.bridge.verifies(SECRET, { header: readHeaderOf(headers), body: BODY, nowMs: 0 }), isAccepted);
  });

test('gitlab may sign by Standard Webhooks, and a wrong signature is refused even with the right token', () => {
  const key = `whsec_${SECRET.toString('base64')}`;
  const nowMs = Date.now();
  const headers = {
    'x-gitlab-event': 'Push Hook',
    'x-gitlab-token': key,
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(nowMs / 1000)),
    'webhook-signature': new Webhook(key).sign('msg_1', new Date(nowMs), BODY.toString()),
  };
  const verify = (changes: object, laterMs = 0) => {
    const header = readHeaderOf({ ...headers, ...changes });
    return findBridge(header)?.bridge.verifies(Buffer.from(key), { header, body: BODY, nowMs: nowMs + laterMs });
  };
  assert.equal(verify({}), true);
  assert.equal(verify({ 'webhook-id': 'msg_2' }), false);
  assert.equal(verify({ 'webhook-signature': 'v1,AAAA' }), false);
  for (const [hours, isAccepted] of [
    [11, true],
    [-11, true],
    [13, false],
    [-13, false],
  ] as const)
    assert.equal(verify({}, hours * 3_600_000), isAccepted, `${hours} hours later`);
  const undated = new Webhook(key).sign('msg_1', new Date(Number.NaN), BODY.toString());
  assert.equal(verify({ 'webhook-timestamp': 'NaN', 'webhook-signature': undated }), false);
});

test('a signed delivery of gitlab is known by its signed id, whatever other ids it has', () => {
  const signed = { 'x-gitlab-event': 'Push Hook', 'webhook-id': 'msg_1', 'webhook-signature': 'v1,AAAA' };
  const header = readHeaderOf({ ...signed, 'idempotency-key': 'chosen by a stranger' });
  assert.equal(findBridge(header)?.bridge.deliveryId(header), 'msg_1');
});

test('what hooks cannot subscribe to is no event', () => {
  for (const name of ['ping', 'fork', 'create', 'star'])
    assert.equal(
      findBridge(readHeaderOf({ 'x-github-event': name }))?.bridge.translate(() => name, {}),
      undefined,
    );
});

test('a comment on a snippet of gitlab, or on what comes after it, is no event', () => {
  const { headers, payload } = readJson('gitlab/note-on-commit.json');
  const { commit: _, ...rest } = payload;
  const translate = (changed: Json) =>
    findBridge(readHeaderOf(headers))?.bridge.translate(readHeaderOf(headers), changed);
  assert.equal(translate({ ...rest, snippet: { id: 1 } }), undefined);
  assert.equal(translate(payload)?.kind, 'note');
});

test('an action on an issue of gitlab that has no name here is an update', () => {
  const { headers, payload } = readJson('gitlab/issue-open.json');
  const attributes = { ...payload.object_attributes, action: 'promoted_to_epic' };
  const found = findBridge(readHeaderOf(headers));
  const event = eventSchema.parse(
    found?.bridge.translate(readHeaderOf(headers), { ...payload, object_attributes: attributes }),
  );
  assert.equal(event.kind === 'issue' && event.action, 'update');
});

for (const path of ['github/push.json', 'gitlab/push.json', 'gitea/push.json'])
  test(`${path} with 2048 commits, as hosts send them, keeps the newest 20 and the number of all`, () => {
    const { headers, payload } = readJson(path);
    const commits = Array.from({ length: 2048 }, (_, index) => ({ ...payload.commits[0], message: `commit ${index}` }));
    const counts = { total_commits: 2048, total_commits_count: 2048 };
    const found = findBridge(readHeaderOf(headers));
    const event = eventSchema.parse(found?.bridge.translate(readHeaderOf(headers), { ...payload, ...counts, commits }));
    assert.ok(event.kind === 'push');
    assert.deepEqual(
      [event.commits.length, event.commits.at(-1)?.message, event.total_commits],
      [20, 'commit 2047', 2048],
    );
  });

const LONG = 'n'.repeat(5000);
/** Commits that git accepts and a host may send. */
const ODD_COMMITS: [title: string, change: Json][] = [
  ['a long author', { author: { name: LONG, email: LONG } }],
  ['an author without a name', { author: { name: null, email: null } }],
  ['no author', { author: null }],
  ['the year 10000', { timestamp: '10000-01-01T00:00:00Z' }],
  ['a year before all', { timestamp: '-0005-01-01T00:00:00Z' }],
  ['zone 99', { timestamp: '2026-01-01T00:00:00+99:99' }],
  ['no time', { timestamp: null }],
  ['an empty time', { timestamp: '' }],
  ['a long message', { message: 'm'.repeat(LIMITS.text + 1) }],
  ['a surrogate pair across the limit', { message: `${'m'.repeat(LIMITS.text - 1)}\u{1f600}` }],
  ['a long path', { added: [LONG.repeat(60)] }],
  ['a long address', { url: `https://example.com/${LONG}` }],
  ['an empty tree id', { tree_id: '' }],
  ['no paths', { added: null, modified: null, removed: null }],
];
for (const path of ['github/push.json', 'gitlab/push.json', 'gitea/push.json'])
  for (const [title, change] of ODD_COMMITS)
    test(`${path} with a commit that has ${title} is published, within the limits of the API`, () => {
      const { headers, payload } = readJson(path);
      const commits = [{ ...payload.commits[0], ...change }];
      const found = findBridge(readHeaderOf(headers));
      assert.ok(found);
      const translated = translateWebhook(found, readHeaderOf(headers), { ...payload, commits });
      const event = foreignEventSchema.parse(translated);
      assert.ok(event.kind === 'push' && event.commits.length === 1);
      eventSchema.parse(event);
    });

test('a long branch, title, person and description of a bridge are shortened, not refused', () => {
  for (const path of ['gitlab/merge-request-update.json', 'gitlab/push.json']) {
    const { headers, payload } = readJson(path);
    const text = JSON.stringify(payload, (_, value) =>
      typeof value === 'string' && isFree(value) ? value + LONG : value,
    );
    const found = findBridge(readHeaderOf(headers));
    assert.ok(found);
    eventSchema.parse(foreignEventSchema.parse(translateWebhook(found, readHeaderOf(headers), JSON.parse(text))));
  }
});

/** Whether the value is free text: no keyword of the host, no id and no time. */
function isFree(value: string): boolean {
  return !/^([a-z_]+|[0-9a-f]{40}|\d{4}-.*)$/.test(value);
}

test('an event whose time is no time is not refused', () => {
  const { headers, payload } = readJson('github/issue-opened.json');
  const issue = { ...payload.issue, created_at: '2026-02-30T10:28:03Z', updated_at: 'run 7' };
  const found = findBridge(readHeaderOf(headers));
  const event = found?.bridge.translate(readHeaderOf(headers), { ...payload, issue });
  const { created_at, updated_at } = (foreignEventSchema.parse(event) as Json).issue;
  assert.deepEqual([created_at, updated_at], ['1970-01-01T00:00:00Z', undefined]);
});

test('a plain request belongs to no bridge', () => {
  assert.equal(findBridge(readHeaderOf({ 'content-type': 'application/json' })), undefined);
});

/** Fields that identify the subject of an event; every host sends them. */
const IDENTITY = new Set([
  'ref',
  'after',
  'before',
  'id',
  'sha',
  'commit_id',
  'number',
  'iid',
  'title',
  'name',
  'created_at',
]);
const ODD_VALUES: readonly Json[] = [null, undefined, '', 'n'.repeat(LIMITS.text + 1)];

for (const path of pairs)
  test(`${path} is published whatever becomes of any field that does not say what it is about`, () => {
    const { headers, payload } = readJson(path);
    const found = findBridge(readHeaderOf(headers));
    assert.ok(found);
    for (const [place, key] of listLeaves(payload)) {
      // An item of a list is a changed path, which hosts never send as null.
      if (IDENTITY.has(key) || /^\d+$/.test(key)) continue;
      for (const value of ODD_VALUES) {
        const changed = structuredClone(payload);
        const holder = place.reduce((node, name) => node[name], changed);
        if (typeof value === 'string' && typeof holder[key] !== 'string') continue;
        holder[key] = value;
        const translated = translateWebhook(found, readHeaderOf(headers), changed);
        if (translated !== undefined) eventSchema.parse(foreignEventSchema.parse(translated));
      }
    }
  });

/** Lists every leaf: the keys that lead to its parent, and its own key. */
function listLeaves(node: Json, place: readonly string[] = []): [place: readonly string[], key: string][] {
  return Object.entries(node as Record<string, Json>).flatMap(([key, value]) =>
    typeof value === 'object' && value !== null ? listLeaves(value, [...place, key]) : [[place, key]],
  );
}

/** A sender may leave out any value or change its type: the schema refuses that, and nothing crashes. */
test('a damaged payload is refused, not crashed on', () => {
  fc.assert(
    fc.property(fc.constantFrom(...pairs), fc.nat(), fc.jsonValue(), (path, position, replacement) => {
      const { headers, payload } = readJson(path);
      const damaged = damage(payload, position, replacement);
      const found = findBridge(readHeaderOf(headers));
      try {
        const translated = found && translateWebhook(found, readHeaderOf(headers), damaged);
        if (translated !== undefined) eventSchema.safeParse(translated);
      } catch (error) {
        assert.ok(isFailure(error), String(error));
        assert.equal(error.code, 'invalid');
      }
    }),
    { numRuns: 500 },
  );
});

/** Replaces the value at one place of a tree, counted in depth-first order. */
function damage(value: Json, position: number, replacement: Json): Json {
  const places: [holder: Json, key: string][] = [];
  const visit = (node: Json): void => {
    if (typeof node !== 'object' || node === null) return;
    for (const key of Object.keys(node)) {
      places.push([node, key]);
      visit(node[key]);
    }
  };
  visit(value);
  const place = places[position % places.length];
  if (place) place[0][place[1]] = replacement;
  return value;
}
