/** Recognises incoming webhooks of GitLab, verifies their token, or their signature and the age of its timestamp, and translates them. */
import { createHmac } from 'node:crypto';
import type { EventInput } from '../events/event.ts';
import { MAX_LISTED_COMMITS } from '../events/event-limits.ts';
import { isSameSignature, standardKey } from '../profiles/signature.ts';
import { type Bridge, compact, type Json, type ReadHeader, type SignedRequest, toTime } from './bridge.ts';
import { toCommit, toIssue, toMergeRequest, toPerson } from './gitlab-objects.ts';

type InputOf<Kind extends EventInput['kind']> = Extract<EventInput, { kind: Kind }>;

/** GitLab sends its secret as a plain token, or from version 19 on a Standard Webhooks signature, which must be valid if present. */
export const gitlab: Bridge = {
  recognises: (header) => header('x-gitlab-event') !== undefined,
  verifies: (secret, request) =>
    isSigned(request.header)
      ? verifyStandard(secret, request)
      : // Node decodes headers as Latin-1, so this restores the bytes as received.
        isSameSignature(secret, Buffer.from(request.header('x-gitlab-token') ?? '', 'latin1')),
  // Of a signed delivery only the signed id counts: an attacker who saw the delivery could send it again under another id.
  deliveryId: (header) =>
    isSigned(header) ? header('webhook-id') : (header('idempotency-key') ?? header('x-gitlab-webhook-uuid')),
  translate: (_, payload) => TRANSLATE_OF.get(payload.object_kind)?.(payload),
};

function isSigned(header: ReadHeader): boolean {
  return header('webhook-signature') !== undefined;
}

/** Half of the 24 hours in which a delivery is recognised by its id, so that a copy is either recognised or too old. */
const MAX_SKEW_MS = 12 * 3_600_000;

function verifyStandard(secret: Buffer, { header, body, nowMs }: SignedRequest): boolean {
  const skewMs = Math.abs(nowMs - Number(header('webhook-timestamp') || Number.NaN) * 1000);
  if (!header('webhook-id') || !(skewMs < MAX_SKEW_MS)) return false;
  const signed = `${header('webhook-id')}.${header('webhook-timestamp')}.`;
  const expected = createHmac('sha256', standardKey(secret)).update(signed).update(body).digest('base64');
  const given = (header('webhook-signature') ?? '').split(' ');
  return given.some((signature) => isSameSignature(Buffer.from(`v1,${expected}`), Buffer.from(signature)));
}

/** Other actions, such as approvals, are published as updates. */
const MERGE_ACTIONS = new Set(['open', 'update', 'merge', 'close', 'reopen']);
const ISSUE_ACTIONS = new Set(['open', 'update', 'close', 'reopen']);

type Translate = (payload: Json) => EventInput | undefined;

const TRANSLATORS = Object.entries<Translate>({
  push: (payload) => ({ kind: 'push', ref: payload.ref, ...toReference(payload) }),
  tag_push: (payload) =>
    compact({ kind: 'tag_push' as const, ref: payload.ref, checkout: payload.checkout_sha, ...toReference(payload) }),
  issue: (payload) => ({
    kind: 'issue',
    action: ISSUE_ACTIONS.has(payload.object_attributes?.action) ? payload.object_attributes.action : 'update',
    actor: toPerson(payload.user),
    issue: toIssue(payload.object_attributes, payload),
    changes: payload.changes ?? {},
  }),
  merge_request: (payload) =>
    compact({
      kind: 'merge_request' as const,
      action: MERGE_ACTIONS.has(payload.object_attributes?.action) ? payload.object_attributes.action : 'update',
      actor: toPerson(payload.user),
      merge_request: toMergeRequest(payload.object_attributes, payload),
      previous_head: payload.object_attributes?.oldrev || undefined,
      changes: payload.changes ?? {},
    }),
  note: translateNote,
});
const TRANSLATE_OF: ReadonlyMap<unknown, Translate> = new Map(TRANSLATORS);

/** Undefined for a comment on an object that has no events here, such as a snippet or an epic. */
function translateNote(payload: Json): InputOf<'note'> | undefined {
  const target = toTarget(payload);
  if (target === undefined) return undefined;
  return {
    kind: 'note',
    actor: toPerson(payload.user),
    note: compact({
      id: payload.object_attributes?.id,
      body: payload.object_attributes?.note ?? '',
      discussion_id: payload.object_attributes?.discussion_id,
      created_at: toTime(payload.object_attributes?.created_at) ?? '',
      updated_at: toTime(payload.object_attributes?.updated_at),
      url: payload.object_attributes?.url,
    }),
    target,
  };
}

function toReference(payload: Json) {
  return {
    before: payload.before,
    after: payload.after,
    message: payload.message ?? '',
    commits: (payload.commits ?? []).slice(-MAX_LISTED_COMMITS).map(toCommit),
    total_commits: payload.total_commits_count ?? 0,
    actor: compact({
      id: payload.user_id,
      username: payload.user_username,
      name: payload.user_name,
      email: payload.user_email,
      avatar_url: payload.user_avatar,
    }),
  };
}

function toTarget(payload: Json): InputOf<'note'>['target'] | undefined {
  if (payload.merge_request)
    return { type: 'merge_request', merge_request: toMergeRequest(payload.merge_request, payload) };
  if (payload.issue) return { type: 'issue', issue: toIssue(payload.issue, payload) };
  return payload.commit && { type: 'commit', commit: toCommit(payload.commit) };
}
