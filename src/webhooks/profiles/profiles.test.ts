import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import { context, createAttempt, TIMESTAMP_MS } from '../../../test/support/webhooks/delivery-attempt.ts';
import { type Event, type EventInput, eventSchema } from '../events/event.ts';
import { createSampleEvent } from '../events/sample-event.ts';
import { PROFILE_NAMES, type ProfileName } from '../hooks/hook.ts';
import { PROFILES, prepareRequest } from './profiles.ts';

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

/** Free texts, which may be empty on both code hosts. */
const FREE_TEXTS = ['description', 'body', 'email', 'user_email', 'message', 'note', 'color'];
/** GitLab has null for a missing avatar. GitHub always has an address, so its receivers do not expect null. */
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

/** The event without avatars, messages and all other optional fields. */
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
