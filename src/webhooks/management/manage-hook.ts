/** Creates, changes, enables, disables and deletes hooks, and holds, releases or cancels their waiting deliveries. */
import { z } from '@hono/zod-openapi';
import type { BoundStatement } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { Actor } from '../../operations/operation.ts';
import { MAX_URL_LENGTH } from '../addresses/destination-url.ts';
import {
  cancelHookQueueStatement,
  holdHookQueueStatement,
  moveHookQueueStatement,
  releaseHookQueueStatement,
  releaseOffHookQueueStatements,
} from '../delivery/queue/delivery-store.ts';
import { EVENT_KINDS, type EventKind, FLAG_OF } from '../events/event-kind.ts';
import { type EncryptionType, encryptSecret, type Hook, PROFILE_NAMES } from '../hooks/hook.ts';
import { changeHook, type HookChange } from '../hooks/hook-change-store.ts';
import { findHookOfRepository, insertHook, listHooks, removeHook, type StoredHook } from '../hooks/hook-store.ts';
import { flagParameter, integerParameter } from '../parameters/parameters.ts';
import { sendsPassword } from '../profiles/profiles.ts';
import { nextNumber } from '../repositories/number-store.ts';
import { fullNameOf, type Repository } from '../repositories/repository.ts';
import { refuseDeleted } from '../repositories/repository-access.ts';
import { changeKey, checkBlanks, checkHeaderPassword, checkKeyStaysHidden } from './hook-key.ts';
import type { Management } from './management.ts';
import { listHookRecords, recordHookChange } from './record-change.ts';

export const MAX_HOOKS = 50;
const MAX_PASSWORD_LENGTH = 255;

/** A password is sent in a header, which a control character would end; a lone surrogate cannot be encoded. */
const isHeaderSafe = (text: string) => !/\p{Cc}/u.test(text) && text.isWellFormed();

const url = z.string().max(MAX_URL_LENGTH, `must be at most ${MAX_URL_LENGTH} characters`);
const optionalParameters = {
  encryption_type: integerParameter(0, 1)
    .optional()
    .openapi({ description: '0: password, 1: signature key.', default: 0 }),
  password: z
    .string('must be text')
    .max(MAX_PASSWORD_LENGTH, `must be at most ${MAX_PASSWORD_LENGTH} characters`)
    .refine(isHeaderSafe, 'must not hold control characters or lone surrogates')
    .optional(),
  push_events: flagParameter.optional(),
  tag_push_events: flagParameter.optional(),
  issues_events: flagParameter.optional(),
  note_events: flagParameter.optional(),
  merge_requests_events: flagParameter.optional(),
  profile: z
    .enum(PROFILE_NAMES, `must be one of ${PROFILE_NAMES.join(', ')}`)
    .optional()
    .openapi({
      description: 'The code host whose headers, body format and signature the receiver expects.',
      default: 'gitcode',
    }),
};

export const newHookParameters = z.object({ url, ...optionalParameters }).openapi('NewHook');
export const hookChangeParameters = z
  .object({
    url,
    ...optionalParameters,
    remove_password: flagParameter
      .optional()
      .openapi({ description: 'Removes the password. An empty password counts as not given, and removes nothing.' }),
    active: flagParameter.optional().openapi({ description: 'Off holds events back; on sends what was held.' }),
  })
  .openapi('HookChange');
/** For callers that need not send the url; GitCode's API requires it. */
export const hookSettingParameters = hookChangeParameters.partial({ url: true });

type NewHookParameters = z.output<typeof newHookParameters>;
type HookChangeParameters = z.output<typeof hookSettingParameters>;

export interface NewHookPlace {
  readonly repository: Repository;
  readonly actor: Actor;
}

export async function createHook(
  dependencies: Management,
  { repository, actor }: NewHookPlace,
  parameters: NewHookParameters,
): Promise<StoredHook> {
  await dependencies.guard.checkUrl(parameters.url);
  const { encryption_type = 0, password = '', profile = 'gitcode' } = parameters;
  const encryptionType = encryption_type as EncryptionType;
  if (sendsPassword({ encryptionType, profile })) checkBlanks(password, 'create');
  const id = await nextNumber(dependencies.store, 'hook');
  const events = readEvents(parameters);
  const nowMs = dependencies.world.nowMs();
  const creation = insertHook(
    dependencies.store,
    {
      id,
      repositoryId: repository.id,
      url: parameters.url,
      encryptionType,
      profile,
      events: {
        push: events.push ?? true,
        tag_push: events.tag_push ?? false,
        issue: events.issue ?? false,
        note: events.note ?? false,
        merge_request: events.merge_request ?? false,
      },
      secret: encryptSecret(dependencies.cipher, id, password),
      nowMs,
    },
    {
      maximum: MAX_HOOKS,
      statements: [recordHookChange(dependencies, 'hook_created', { repository, actor, id, nowMs })],
    },
  );
  if (!(await refuseDeleted(repository, creation)))
    throw new Failure('conflict', `Cannot create the webhook: a repository has at most ${MAX_HOOKS} of them`);
  return await findHook(dependencies, repository, id);
}

/** The hook to change, and the actor who changes it. */
export interface HookTarget {
  readonly repository: Repository;
  readonly stored: StoredHook;
  readonly actor: Actor;
  /** Whether the actor may change the webhook, but not read its key. */
  readonly hidesKey?: boolean;
}

/** Changes a hook; absent fields stay as they are. After a change of the password, the former one also signs for one more day. */
export async function updateHook(
  dependencies: Management,
  target: HookTarget,
  given: HookChangeParameters,
): Promise<StoredHook> {
  const { repository, stored, hidesKey = false } = target;
  const parameters = omitUnchanged(stored, given);
  // A hook whose address is no longer allowed can still be switched off.
  if (parameters.active !== false || parameters.url !== undefined)
    await dependencies.guard.checkUrl(parameters.url ?? stored.hook.url);
  const nowMs = dependencies.world.nowMs();
  checkKeyStaysHidden(dependencies, target, parameters, nowMs);
  const secret = changeKey(dependencies, target, parameters, nowMs);
  const change: HookChange = {
    url: parameters.url,
    encryptionType: parameters.encryption_type as EncryptionType | undefined,
    profile: parameters.profile,
    events: readEvents(parameters),
    secret,
    // A key that is set concurrently must not reach the receiver that this change sets.
    expected: hidesKey || secret !== undefined ? stored.encrypted : undefined,
    switch: chooseSwitch(parameters),
    nowMs,
  };
  checkHeaderPassword(dependencies, stored, change, parameters);
  const updated = await changeHook(
    dependencies.store,
    { id: stored.hook.id, change },
    { ofHookQueue: listHookQueueStatements(stored, change), ...listHookRecords(dependencies, target, change) },
  );
  // The hook was deleted, or another change of the key came first: this change is repeated on the new state.
  if (updated === undefined) {
    const newest = await findHook(dependencies, repository, stored.hook.id);
    return await updateHook(dependencies, { ...target, stored: newest }, parameters);
  }
  dependencies.wakeDeliveries();
  return updated;
}

/** Leaves out unchanged fields, so that a client that sends back what it read does not undo a concurrent change. */
function omitUnchanged({ hook }: StoredHook, parameters: HookChangeParameters): HookChangeParameters {
  const current: HookChangeParameters = {
    url: hook.url,
    encryption_type: hook.encryptionType,
    profile: hook.profile,
    ...Object.fromEntries(EVENT_KINDS.map((kind) => [FLAG_OF[kind], hook.events[kind]])),
  };
  const entries = Object.entries(parameters) as [keyof HookChangeParameters, unknown][];
  return Object.fromEntries(entries.filter(([name, value]) => value !== current[name])) as HookChangeParameters;
}

export function switchHook(dependencies: Management, target: HookTarget, active: boolean): Promise<StoredHook> {
  return updateHook(dependencies, target, { active });
}

/** Deletes a hook and cancels its pending deliveries. */
export async function deleteHook(dependencies: Management, { repository, stored, actor }: HookTarget): Promise<void> {
  const { id } = stored.hook;
  const nowMs = dependencies.world.nowMs();
  const record = recordHookChange(dependencies, 'hook_deleted', { repository, actor, id, nowMs });
  await removeHook(dependencies.store, id, { ofHookQueue: [cancelHookQueueStatement(id, nowMs)], records: [record] });
}

export async function findHook(dependencies: Management, repository: Repository, id: number): Promise<StoredHook> {
  const stored = await findHookOfRepository(dependencies.store, repository.id, id);
  if (stored !== undefined) return stored;
  throw refuseUnknownHook(
    id,
    repository,
    await listHooks(dependencies.store, repository.id, { size: MAX_HOOKS, offset: 0 }),
  );
}

/** Names the existing ids, since the caller administers the repository and may list them. */
function refuseUnknownHook(id: number, repository: Repository, others: readonly StoredHook[]): Failure {
  const name = fullNameOf(repository);
  const details = { errorCode: 1003, errorCodeName: 'NOT_EXIST' };
  if (others.length === 0)
    return new Failure('not_found', `Webhook not found: ${name} has no ${id}, it has no webhook`, details);
  const ids = others.map(({ hook }) => hook.id).join(', ');
  return new Failure('not_found', `Webhook not found: ${name} has no ${id}, it has ${ids}`, details);
}

function readEvents(parameters: Omit<NewHookParameters, 'url'>): Partial<Record<EventKind, boolean>> {
  const given = EVENT_KINDS.map((kind) => [kind, parameters[FLAG_OF[kind]]] as const);
  return Object.fromEntries(given.filter(([, wanted]) => wanted !== undefined));
}

/**
 * A new URL switches on a hook that the service or its owner switched off, unless the change has `active: false`. That includes a hook
 * that was read as enabled, since it may have been disabled meanwhile.
 */
function chooseSwitch({ active, url }: HookChangeParameters): HookChange['switch'] {
  if (active !== undefined) return active ? 'on' : 'off';
  return url === undefined ? undefined : 'on';
}

function listHookQueueStatements({ hook }: StoredHook, change: HookChange): BoundStatement[] {
  const { url = hook.url, nowMs } = change;
  const { origin } = new URL(url);
  return [
    ...(origin === new URL(hook.url).origin ? [] : [moveHookQueueStatement(hook.id, origin)]),
    ...(change.switch === 'off' ? [holdHookQueueStatement(hook.id, nowMs)] : []),
    ...(url !== hook.url && change.switch !== 'off' ? [releaseHookQueueStatement(hook.id, nowMs)] : []),
    ...(url === hook.url && change.switch === 'on' ? listEnablingStatements(hook, nowMs) : []),
  ];
}

/** A client may send back `active: true` of an enabled hook as it was read, which must not reset its failures. */
function listEnablingStatements({ id, disabledAtMs }: Hook, nowMs: number): BoundStatement[] {
  return disabledAtMs === null ? releaseOffHookQueueStatements(id, nowMs) : [releaseHookQueueStatement(id, nowMs)];
}
