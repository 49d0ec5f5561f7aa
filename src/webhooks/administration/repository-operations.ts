/** Declares the operations on repositories of all owners, and on events published for them. */
import { z } from '@hono/zod-openapi';
import { describeOperation } from '../../operations/operation.ts';
import { idPage } from '../../operations/paging.ts';
import { eventSchema } from '../events/event.ts';
import { EVENT_KINDS } from '../events/event-kind.ts';
import { eventReceiptFields } from '../intake/event-receipt.ts';
import { repositoryParameters } from '../repositories/create-repository.ts';
import { repositoryJson } from '../repositories/repository-json.ts';

const about = { tag: 'All repositories', scope: 'admin:hooks' } as const;

export const repositoryName = z
  .string()
  .max(300)
  .regex(/^[^/]+\/[^/]+$/, 'must be OWNER/NAME')
  .openapi({ example: 'ada/doors' });
const login = z.string().min(1).max(100);
const ofRepository = z.object({ owner: login, name: z.string().min(1).max(100) });

export const listRepositories = describeOperation({
  ...about,
  name: 'listAllRepositories',
  method: 'get',
  path: '/repositories',
  summary: 'List all repositories, or those of one person or organization',
  input: z.object({
    owner: login.optional().openapi({ description: 'Only of this person or organization' }),
    ...idPage,
  }),
  output: z
    .object({
      repositories: z.array(repositoryJson).openapi({ description: 'In the order of their ids' }),
      next: z.int().nullable(),
    })
    .openapi('AllRepositoriesPage'),
});
export const addRepository = describeOperation({
  ...about,
  name: 'createAnyRepository',
  method: 'post',
  path: '/repositories',
  summary: 'Create a repository of a person or an organization',
  input: z.object({ owner: login, ...repositoryParameters.shape }),
  output: repositoryJson,
});
export const showRepository = describeOperation({
  ...about,
  name: 'showAnyRepository',
  method: 'get',
  path: '/repositories/{owner}/{name}',
  summary: 'Show a repository',
  input: ofRepository,
  output: repositoryJson,
});
export const removeRepository = describeOperation({
  ...about,
  name: 'deleteAnyRepository',
  method: 'delete',
  path: '/repositories/{owner}/{name}',
  summary: 'Delete a repository with its webhooks',
  input: ofRepository,
  output: z.object({ id: z.int(), full_name: z.string() }).openapi('DeletedRepository'),
  takesLong: true,
});

export const publishAnyEvent = describeOperation({
  tag: 'All repositories',
  scope: 'events:write',
  name: 'announceAnyEvent',
  method: 'post',
  path: '/repositories/{owner}/{name}/events',
  summary: 'Publish an event of a repository that the token reaches, or a sample of a kind',
  input: ofRepository.extend({
    event: eventSchema.optional(),
    sample: z
      .enum(EVENT_KINDS as [string, ...string[]])
      .optional()
      .openapi({ description: 'The kind, in place of an event' }),
    idempotencyKey: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .openapi({ description: 'A repetition within 24 hours answers as the first did and sends nothing' }),
  }),
  output: z.object(eventReceiptFields).openapi('AnnouncedEvent'),
});
