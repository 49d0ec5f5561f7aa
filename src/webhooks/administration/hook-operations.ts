/** Webhooks of all repositories over the administration API and by command; their passwords stay where they are. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import { type Actor, describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import { listAllHooks } from '../hooks/all-hooks-store.ts';
import { readHold } from '../hooks/hook-status-store.ts';
import type { StoredHook } from '../hooks/hook-store.ts';
import { hookJson, toHookJson } from '../management/hook-json.ts';
import { switchHook } from '../management/manage-hook.ts';
import type { Management } from '../management/management.ts';
import type { Repository } from '../repositories/repository.ts';

const about = { tag: 'All webhooks', scope: 'admin:hooks' } as const;
const hookSchema = hookJson
  .omit({ password: true })
  .extend({ repository: z.string().openapi({ description: 'OWNER/NAME' }) })
  .openapi('AnyHook');
const ofHook = z.object({ id: z.coerce.number().int().min(1) });
const repositoryName = z
  .string()
  .max(300)
  .regex(/^[^/]+\/[^/]+$/, 'must be OWNER/NAME');

export type AnyHook = z.infer<typeof hookSchema>;

export const listHooks = describeOperation({
  ...about,
  name: 'listAllHooks',
  method: 'get',
  path: '/hooks',
  summary: 'List the webhooks of all repositories, or of one',
  input: z.object({
    repository: repositoryName.optional(),
    state: z.enum(['on', 'off', 'any']).default('any'),
    after: z.coerce
      .number()
      .int()
      .min(0)
      .default(0)
      .openapi({ description: 'Where the page before ended: its `next`' }),
    limit: z.coerce.number().int().min(1).max(200).default(100),
  }),
  output: z.object({ hooks: z.array(hookSchema), next: z.int().nullable() }).openapi('AllHooksPage'),
});
export const showHook = describeOperation({
  ...about,
  name: 'showAnyHook',
  method: 'get',
  path: '/hooks/{id}',
  summary: 'Show a webhook of any repository',
  input: ofHook,
  output: hookSchema,
});
export const enableHook = describeOperation({
  ...about,
  name: 'enableAnyHook',
  method: 'post',
  path: '/hooks/{id}/enable',
  summary: 'Switch a webhook on again, and send what was held',
  input: ofHook,
  output: hookSchema,
});
export const disableHook = describeOperation({
  ...about,
  name: 'disableAnyHook',
  method: 'post',
  path: '/hooks/{id}/disable',
  summary: 'Switch a webhook off, and hold what happens from now on for it',
  input: ofHook,
  output: hookSchema,
});

export interface HookOperationsDependencies {
  readonly management: Management;
  readonly auditChange: AuditChange;
}

export function implementHooks(dependencies: HookOperationsDependencies): Implementation[] {
  const { management } = dependencies;
  return [
    implement(listHooks, (input) => listPage(management, input)),
    implement(showHook, async ({ id }) => describe(management, await findHook(management, id))),
    implement(enableHook, ({ id }, { actor }) => change(dependencies, actor, { id, active: true })),
    implement(disableHook, ({ id }, { actor }) => change(dependencies, actor, { id, active: false })),
  ];
}

interface HooksPage {
  readonly repository?: string | undefined;
  readonly state: 'on' | 'off' | 'any';
  readonly after: number;
  readonly limit: number;
}

async function listPage(management: Management, { repository, state, after, limit }: HooksPage) {
  const [owner = '', path = ''] = repository?.split('/') ?? [];
  const only = repository === undefined ? undefined : await management.access.find(owner, path);
  const query = { afterId: after, repositoryId: only?.id, state, limit: limit + 1 };
  const found = await listAllHooks(management.store, query);
  const shown = found.slice(0, limit);
  const hooks = await Promise.all(
    shown.map(async (stored) => describe(management, { stored, repository: await findRepository(management, stored) })),
  );
  return { hooks, next: found.length > limit ? (hooks.at(-1)?.id ?? null) : null };
}

interface FoundHook {
  readonly stored: StoredHook;
  readonly repository: Repository;
}

async function findHook(management: Management, id: number): Promise<FoundHook> {
  const stored = await management.hooks.findById(id);
  if (stored === undefined) throw new Failure('not_found', `Cannot find the webhook ${id}`);
  return { stored, repository: await findRepository(management, stored) };
}

/** The repository may be deleted, with its webhooks, at any moment. */
async function findRepository({ repositories }: Management, { hook }: StoredHook): Promise<Repository> {
  const repository = await repositories.findById(hook.repositoryId);
  if (repository === undefined) throw new Failure('not_found', `Cannot find the webhook ${hook.id}`);
  return repository;
}

async function describe({ store, world, cipher }: Management, { stored, repository }: FoundHook): Promise<AnyHook> {
  const nowMs = world.nowMs();
  const { pause } = await readHold(store, stored.hook.id, nowMs);
  const { password: _, ...hook } = toHookJson(stored, { cipher, nowMs, pause });
  return { ...hook, repository: nameOf(repository) };
}

function nameOf({ ownerLogin, path }: Repository): string {
  return `${ownerLogin}/${path}`;
}

async function change(
  { management, auditChange }: HookOperationsDependencies,
  actor: Actor,
  { id, active }: { readonly id: number; readonly active: boolean },
): Promise<AnyHook> {
  const { stored, repository } = await findHook(management, id);
  const kind = active ? 'hook_enabled' : 'hook_disabled';
  const details = { hook: id, repository: nameOf(repository) };
  const statements = [auditChange({ kind, actor, details }, management.world.nowMs())];
  return await describe(management, {
    repository,
    stored: await switchHook(management, { repository, stored, active, statements }),
  });
}
