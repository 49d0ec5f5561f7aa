/** Implements the operations on webhooks of all repositories. */
import { type Actor, type Implementation, implement } from '../../operations/operation.ts';
import { listAllHooks } from '../hooks/all-hooks-store.ts';
import { readHold, readHookQueueStatus } from '../hooks/hook-status-store.ts';
import { toHookJson } from '../management/hook-json.ts';
import { createHook, deleteHook, type HookTarget, switchHook, updateHook } from '../management/manage-hook.ts';
import type { Management } from '../management/management.ts';
import { fullNameOf } from '../repositories/repository.ts';
import { findRepositoryById } from '../repositories/repository-store.ts';
import { type FoundHook, findAnyHook, findNamed, type HookReference } from './find-hook.ts';
import {
  type AnyHook,
  addHook,
  changeHook,
  disableHook,
  enableHook,
  listHooks,
  removeHook,
  showHook,
} from './hook-operations.ts';

export interface HookDependencies {
  readonly management: Management;
  /** Operations over the network hide passwords; a command on the store shows them, as the console does to the owner. */
  readonly passwords: 'shown' | 'hidden';
}

export function implementHooks(dependencies: HookDependencies): Implementation[] {
  const { management } = dependencies;
  const find = async (reference: HookReference, actor: Actor): Promise<HookTarget> => ({
    ...(await findAnyHook(management, reference)),
    actor,
    hidesKey: !actor.isAdmin,
  });
  return [
    implement(listHooks, (input) => listPage(dependencies, input)),
    implement(addHook, async ({ repository: name, ...parameters }, { actor }) => {
      const repository = await findNamed(management, name);
      const stored = await createHook(management, { repository, actor }, parameters);
      return await describe(dependencies, { repository, stored });
    }),
    implement(showHook, async (reference) => {
      const found = await findAnyHook(management, reference);
      const status = await readHookQueueStatus(management.store, found.stored.hook.id);
      const { waiting, failingSinceMs, fails } = status;
      const failing_since = failingSinceMs === null ? null : new Date(failingSinceMs).toISOString();
      return { ...(await describe(dependencies, found)), waiting, failing_since, failed_attempts: fails };
    }),
    implement(changeHook, async ({ id, repository: name, ...changes }, { actor }) => {
      const target = await find({ id, repository: name }, actor);
      return await describe(dependencies, { ...target, stored: await updateHook(management, target, changes) });
    }),
    implement(removeHook, async (reference, { actor }) => {
      const target = await find(reference, actor);
      await deleteHook(management, target);
      return { id: target.stored.hook.id, repository: fullNameOf(target.repository) };
    }),
    ...([[enableHook, true] as const, [disableHook, false] as const] as const).map(([operation, active]) =>
      implement(operation, async (reference, { actor }) => {
        const target = await find(reference, actor);
        return await describe(dependencies, { ...target, stored: await switchHook(management, target, active) });
      }),
    ),
  ];
}

interface HooksPage {
  readonly repository?: string | undefined;
  readonly state: 'on' | 'off' | 'any';
  readonly after: number;
  readonly limit: number;
}

async function listPage(dependencies: HookDependencies, { repository, state, after, limit }: HooksPage) {
  const { management } = dependencies;
  const only = repository === undefined ? undefined : await findNamed(management, repository);
  const query = { afterId: after, repositoryId: only?.id, state, limit: limit + 1 };
  const found = await listAllHooks(management.store, query);
  const page = found.slice(0, limit);
  const hooks = await Promise.all(
    page.map(async (stored) => {
      const repository = only ?? (await findRepositoryById(management.store, stored.hook.repositoryId));
      return repository && (await describe(dependencies, { stored, repository }));
    }),
  );
  return {
    // The repository of a hook may have been deleted since it was read.
    hooks: hooks.filter((hook) => hook !== undefined),
    next: found.length > limit ? (page.at(-1)?.hook.id ?? null) : null,
  };
}

async function describe(
  { management: { store, world, cipher }, passwords }: HookDependencies,
  { stored, repository }: FoundHook,
): Promise<AnyHook> {
  const nowMs = world.nowMs();
  const { pause } = await readHold(store, stored.hook.id, nowMs);
  const { password, ...hook } = toHookJson(stored, { cipher, nowMs, pause });
  const shown = { ...hook, repository: fullNameOf(repository) };
  return passwords === 'hidden' ? shown : Object.assign(shown, { password });
}
