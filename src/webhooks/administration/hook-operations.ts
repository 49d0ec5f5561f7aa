/** Declares the operations on webhooks of all repositories, without their secrets over the network. */
import { z } from '@hono/zod-openapi';
import { describeOperation } from '../../operations/operation.ts';
import { idPage } from '../../operations/paging.ts';
import { hookJson } from '../management/hook-json.ts';
import { hookSettingParameters, newHookParameters } from '../management/manage-hook.ts';
import { repositoryName } from './repository-operations.ts';

const about = { tag: 'All webhooks', scope: 'admin:hooks' } as const;
const hookSchema = hookJson
  .omit({ password: true })
  .extend({ repository: z.string().openapi({ description: 'OWNER/NAME' }) })
  .openapi('AnyHook');
const shownHookSchema = hookSchema
  .extend({
    waiting: z.int().openapi({ description: 'Deliveries that wait or are held' }),
    failing_since: z.string().nullable().openapi({ description: 'Since when every attempt has failed' }),
    failed_attempts: z.int().openapi({ description: 'Attempts that failed since then' }),
  })
  .openapi('AnyHookInDetail');

/** A webhook by its id; with a repository, only if it is of that one. */
export const ofHook = z.object({
  id: z.coerce.number().int().min(1),
  repository: repositoryName
    .optional()
    .openapi({ description: 'OWNER/NAME; refused with 404 when the webhook is of another one' }),
});

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
    ...idPage,
  }),
  output: z.object({ hooks: z.array(hookSchema), next: z.int().nullable() }).openapi('AllHooksPage'),
});
export const addHook = describeOperation({
  ...about,
  name: 'createAnyHook',
  method: 'post',
  path: '/hooks',
  summary: 'Create a webhook of any repository',
  input: z.object({ repository: repositoryName, ...newHookParameters.shape }),
  output: hookSchema,
});
export const showHook = describeOperation({
  ...about,
  name: 'showAnyHook',
  method: 'get',
  path: '/hooks/{id}',
  summary: 'Show a webhook of any repository',
  input: ofHook,
  output: shownHookSchema,
});
export const changeHook = describeOperation({
  ...about,
  name: 'updateAnyHook',
  method: 'patch',
  path: '/hooks/{id}',
  summary: 'Change a webhook; what is not named stays',
  input: ofHook.extend(hookSettingParameters.shape),
  readAs: shownHookSchema,
  output: hookSchema,
});
export const removeHook = describeOperation({
  ...about,
  name: 'deleteAnyHook',
  method: 'delete',
  path: '/hooks/{id}',
  summary: 'Delete a webhook, and cancel what waits for it',
  input: ofHook,
  output: z.object({ id: z.int(), repository: z.string() }).openapi('DeletedHook'),
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
