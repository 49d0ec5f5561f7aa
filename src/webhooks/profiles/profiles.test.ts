import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { type Event, type EventInput, eventSchema } from '../events/event.ts';
import { EVENT_KINDS, type EventKind } from '../events/event-kind.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { PROFILE_NAMES, type ProfileName } from '../hooks/hook.ts';
import type { Repository } from '../repositories/repository.ts';
import type { Attempt, RenderContext } from './profile.ts';
import { PROFILES, prepareRequest } from './profiles.ts';
import { signBody, signTimestamp } from './signature.ts';

const repository: Repository = {
  id: 42,
  ownerKind: 'organization',
  ownerId: 'o1',
  ownerLogin: 'acme',
  name: 'Doors',
  path: 'doors',
  description: 'They open and close',
  isPrivate: false,
  defaultBranch: 'main',
  webUrl: 'https://code.example.com/acme/doors',
  httpUrl: 'https://code.example.com/acme/doors.git',
  sshUrl: 'git@code.example.com:acme/doors.git',
  createdAtMs: Date.UTC(2026, 0, 1),
  updatedAtMs: Date.UTC(2026, 1, 1),
};
const context: RenderContext = {
  repository,
  hookId: 7,
  deliveryUuid: '607294e6-0e65-417f-a42b-3edd70de32ee',
  nowMs: Date.UTC(2026, 2, 1),
};
const TIMESTAMP_MS = 1_772_330_400_000;
const fixtures = new URL('fixtures/', import.meta.url);
const names = globSync('events/*.json', { cwd: fixtures }).map((path) => basename(path, '.json'));

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, fixtures), 'utf8'));
}

function renderFixture(profile: ProfileName, name: string): unknown {
  const event = eventSchema.parse(readJson(`events/${name}.json`));
  const body = PROFILES[profile].render(event, context);
  const prepared = prepareRequest(profile, createAttempt({ eventKind: event.kind, body }));
  return JSON.parse(Buffer.from(prepared.body).toString('utf8'));
}

function createAttempt(changes: Partial<Attempt>): Attempt {
  return {
    hookId: 7,
    encryptionType: 1,
    secrets: { current: Buffer.from('secret'), former: [] },
    eventKind: 'push',
    deliveryUuid: context.deliveryUuid,
    body: Buffer.from('{}'),
    timestampMs: TIMESTAMP_MS,
    ...changes,
  };
}

for (const profile of PROFILE_NAMES)
  for (const name of names)
    test(`${profile} renders ${name} as its golden body`, () => {
      assert.deepEqual(renderFixture(profile, name), readJson(`${profile}/${name}.json`));
    });

const UPDATE = readJson('events/merge-request-update.json') as EventInput & { kind: 'merge_request' };

test('gitlab has oldrev when new commits came, and only then: receivers test whether it is there', () => {
  for (const previous_head of ['a'.repeat(40), undefined]) {
    const event = eventSchema.parse({ ...UPDATE, action: 'update', previous_head });
    const body = JSON.parse(Buffer.from(PROFILES.gitlab.render(event, context)).toString('utf8'));
    assert.equal(body.object_attributes.oldrev, previous_head);
    assert.equal('oldrev' in body.object_attributes, previous_head !== undefined);
  }
});

test('the first and the last time of ISO 8601 are rendered in four digits of a year, whatever their offset', () => {
  const push = readJson('events/push.json') as EventInput & { kind: 'push' };
  for (const timestamp of ['0000-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59']) {
    const event = eventSchema.parse({ ...push, commits: push.commits?.map((commit) => ({ ...commit, timestamp })) });
    const body = JSON.parse(Buffer.from(PROFILES.gitcode.render(event, context)).toString('utf8'));
    assert.match(body.commits[0].timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  }
});

test('github has before and after when new commits came, and only then', () => {
  for (const previous_head of ['a'.repeat(40), undefined]) {
    const event = eventSchema.parse({ ...UPDATE, action: 'update', previous_head });
    const body = JSON.parse(Buffer.from(PROFILES.github.render(event, context)).toString('utf8'));
    assert.equal('before' in body, previous_head !== undefined);
    assert.equal('after' in body, previous_head !== undefined);
  }
});

/** Free texts, which both platforms send empty too. */
const FREE_TEXTS = ['description', 'body', 'email', 'user_email', 'message', 'note', 'color'];
/** GitLab has null for a missing picture; GitHub has an address always, so that its receivers do not expect null. */
const MAY_BE_EMPTY = { gitlab: new Set(FREE_TEXTS), github: new Set([...FREE_TEXTS, 'avatar_url']) };

/** Keys whose value is an empty text or object, where a receiver may test for null. */
function listEmpty(value: unknown, key = ''): string[] {
  if (value === '' || (isObject(value) && !Array.isArray(value) && Object.keys(value).length === 0)) return [key];
  return isObject(value)
    ? Object.entries(value).flatMap(([name, child]) => listEmpty(child, Array.isArray(value) ? key : name))
    : [];
}

for (const profile of ['gitlab', 'github'] as const)
  for (const name of names)
    test(`${profile} sends nothing that is there and empty: ${name}`, () => {
      const event = withoutOptional(readJson(`events/${name}.json`) as EventInput);
      const body = JSON.parse(Buffer.from(PROFILES[profile].render(event, context)).toString('utf8'));
      const empty = listEmpty(body).filter((key) => !MAY_BE_EMPTY[profile].has(key) && key !== 'changes');
      assert.deepEqual(empty, []);
    });

/** The event without avatars, no message, and nothing that a host need not tell. */
function withoutOptional(input: EventInput): Event {
  const text = JSON.stringify(input, (key, value) => (key === 'avatar_url' || key === 'base_ref' ? undefined : value));
  return eventSchema.parse({ ...JSON.parse(text), message: '', previous_head: undefined });
}

/** Every key path of a value with its type; the keys of all elements of an array count as one. */
function listKeys(value: unknown, path = '', found = new Map<string, Set<string>>()): Map<string, Set<string>> {
  if (path !== '') found.set(path, (found.get(path) ?? new Set()).add(typeName(value)));
  if (Array.isArray(value)) for (const element of value) if (isObject(element)) listObject(element, `${path}[]`, found);
  if (isObject(value) && !Array.isArray(value)) listObject(value, path, found);
  return found;
}

function listObject(value: object, path: string, found: Map<string, Set<string>>): void {
  for (const [key, child] of Object.entries(value)) listKeys(child, path === '' ? key : `${path}.${key}`, found);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Keys that newer captures of GitCode have and the listed ones do not. */
const NEWER_KEYS: Record<string, RegExp> = {
  gitcode:
    /^(hook_id|hook_type|enterprise_labels|merge_request|commits\[\]\.(added|removed|modified|cooperate_authors)(\[\].*)?|object_attributes\.(act|act_desc|need_approve|tester_list|approver_list))$|^merge_request\./,
  gitee: /^$/,
};
/** Lists whose elements the captures did not show. */
const UNSEEN_ELEMENTS = /labels$|(labels|assignee_list|reviewer_list|assignee)(\[\]|\.)/;

for (const profile of ['gitcode', 'gitee'] as const) {
  const trees = readJson(`${profile}-keys.json`) as Record<string, Record<string, string>>;
  for (const [name, tree] of Object.entries(trees)) {
    test(`${profile}'s ${name} body has every key of the code host's body, with its type`, () => {
      const ours = listKeys(renderFixture(profile, name));
      const missing = Object.entries(tree).filter(([path, type]) => !agrees(ours.get(path), type));
      assert.deepEqual(
        missing.map(([path, type]) => `${path}: ${type}, ours ${[...(ours.get(path) ?? ['absent'])].join(' or ')}`),
        [],
      );
    });

    test(`${profile}'s ${name} body has no key that the code host's body lacks`, () => {
      const extra = [...listKeys(renderFixture(profile, name)).keys()].filter(
        (path) => !(path in tree) && !NEWER_KEYS[profile]?.test(path) && !UNSEEN_ELEMENTS.test(path),
      );
      assert.deepEqual(extra, []);
    });
  }
}

/** A null in a capture says nothing about the type that a value would have. */
function agrees(ours: ReadonlySet<string> | undefined, type: string): boolean {
  if (ours === undefined) return false;
  return type === 'any' || type === 'null' || ours.has(type) || (ours.size === 1 && ours.has('null'));
}

const SIGNATURES: [key: string, body: string, value: string][] = [
  [
    'secret',
    '{\n    "content": "MTI0MTQxMjQxMjQ=",\n    "message": "fas",\n    "branch": "test1-patch-1"\n}',
    'sha256=3938a65bf0a111e17a7dfe928ea0c73a38c5af80006a939a81c46b372e8f8815',
  ],
  [
    '1234',
    '{\n  "note": "/ibforuorg/community-test/pulls/2#note_30974945" \n }',
    'sha256=f585860d0ca237e0550da0e166370b9c372e8aeb2e639b0ac9884cd52681c576',
  ],
  ['1234', '', 'sha256=36acf017ea0974457577506ef75268ac93ed6d61864ee994f438b63916ed1736'],
  [
    "It's a Secret to Everybody",
    'Hello, World!',
    'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  ],
];

for (const [key, body, value] of SIGNATURES)
  test(`the gitcode signature of ${JSON.stringify(body.slice(0, 20))} under "${key}" is the known one`, () => {
    assert.equal(signBody(Buffer.from(key), Buffer.from(body)), value);
    const attempt = createAttempt({ secrets: { current: Buffer.from(key), former: [] }, body: Buffer.from(body) });
    assert.equal(PROFILES.gitcode.headers(attempt)['X-GitCode-Signature-256'], value);
  });

test('the gitee signature of a known time under a known key is the known one', () => {
  assert.equal(
    signTimestamp(Buffer.from('bBg5lrt03VixkX85CNqYIcecC0SIGASE'), 1_633_679_083_918),
    'Xvh4YPVe6l31XpDRL9J2yeaEXabsckIoUUschpXiVck=',
  );
});

test('gitcode sends its headers, and a password instead of a signature for encryption type 0', () => {
  const signed = PROFILES.gitcode.headers(createAttempt({ eventKind: 'merge_request' }));
  assert.equal(signed['User-Agent'], 'git-gitcode-hook');
  assert.equal(signed['Content-Type'], 'application/json');
  assert.equal(signed['X-GitCode-Event'], 'Merge Request Hook');
  assert.equal(signed['X-GitCode-Delivery'], context.deliveryUuid);
  assert.equal(signed['X-GitCode-Token'], undefined);
  const plain = PROFILES.gitcode.headers(createAttempt({ encryptionType: 0 }));
  assert.equal(plain['X-GitCode-Token'], 'secret');
  assert.equal(plain['X-GitCode-Signature-256'], undefined);
});

test('a hook without a password sends neither token nor signature', () => {
  for (const profile of PROFILE_NAMES)
    for (const encryptionType of [0, 1] as const) {
      const headers = PROFILES[profile].headers(
        createAttempt({ encryptionType, secrets: { current: null, former: [] } }),
      );
      const proofs = Object.keys(headers).filter((name) => /token|signature/i.test(name));
      assert.deepEqual(proofs, []);
    }
});

for (const profile of PROFILE_NAMES)
  for (const kind of EVENT_KINDS)
    test(`standardwebhooks accepts a ${kind} delivery of ${profile}, and refuses it changed`, () => {
      checkStandard(profile, kind);
    });

function checkStandard(profile: ProfileName, kind: EventKind): void {
  const nowMs = Date.now();
  const event = createSampleEvent(kind, { username: 'grace', name: 'Grace' }, 'main', nowMs);
  const body = PROFILES[profile].render(event, context);
  const request = prepareRequest(profile, createAttempt({ eventKind: kind, body, timestampMs: nowMs }));
  const receiver = new Webhook('secret', { format: 'raw' });
  assert.ok(receiver.verify(Buffer.from(request.body), request.headers));
  assert.throws(
    () => receiver.verify(`${Buffer.from(request.body).toString()} `, request.headers),
    /No matching signature/,
  );
}

test('while a key is being changed, receivers with the new and the former one both accept; a third does not', () => {
  const attempt = createAttempt({
    secrets: { current: Buffer.from('whsec_bmV3LWtleQ=='), former: [{ key: Buffer.from('former'), untilMs: 0 }] },
    timestampMs: Date.now(),
  });
  const { headers, body } = prepareRequest('gitcode', attempt);
  for (const receiver of [new Webhook('whsec_bmV3LWtleQ=='), new Webhook('former', { format: 'raw' })])
    assert.ok(receiver.verify(Buffer.from(body), headers));
  const stranger = new Webhook('other', { format: 'raw' });
  assert.throws(() => stranger.verify(Buffer.from(body), headers), /No matching signature/);
});

test('gitee puts password, sign and time into the body of each attempt, and none of them into the stored one', () => {
  const event = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', TIMESTAMP_MS);
  const stored = PROFILES.gitee.render(event, context);
  assert.doesNotMatch(Buffer.from(stored).toString(), /"password"|"sign"/);
  const signed = JSON.parse(String(prepareRequest('gitee', createAttempt({ body: stored })).body));
  assert.equal(signed.password, '');
  assert.equal(signed.sign, signTimestamp(Buffer.from('secret'), TIMESTAMP_MS));
  assert.equal(signed.timestamp, String(TIMESTAMP_MS));
  const plain = JSON.parse(String(prepareRequest('gitee', createAttempt({ body: stored, encryptionType: 0 })).body));
  assert.equal(plain.password, 'secret');
  assert.equal(plain.sign, '');
});

test("github names a comment after what it is on, and a tag's push as a push", () => {
  const nameOf = (name: string) => {
    const event = eventSchema.parse(readJson(`events/${name}.json`));
    const body = PROFILES.github.render(event, context);
    return PROFILES.github.headers(createAttempt({ eventKind: event.kind, body }))['X-GitHub-Event'];
  };
  assert.equal(nameOf('note-on-issue'), 'issue_comment');
  assert.equal(nameOf('note-on-merge-request'), 'issue_comment');
  assert.equal(nameOf('note-on-commit'), 'commit_comment');
  assert.equal(nameOf('tag-push'), 'push');
});

test('a push of more than 20 commits lists the newest 20 and counts all', () => {
  const sample = createSampleEvent('push', { username: 'grace', name: 'Grace' }, 'main', TIMESTAMP_MS);
  assert.equal(sample.kind, 'push');
  if (sample.kind !== 'push') return;
  const commits = Array.from({ length: 30 }, (_, index) => ({ ...sample.commits[0]!, message: `commit ${index}` }));
  for (const profile of ['gitcode', 'gitlab', 'gitee'] as const) {
    const body = JSON.parse(String(PROFILES[profile].render({ ...sample, commits }, context)));
    assert.equal(body.commits.length, 20);
    assert.equal(body.commits[19].message, 'commit 29');
    assert.equal(body.total_commits_count, 30);
  }
});
