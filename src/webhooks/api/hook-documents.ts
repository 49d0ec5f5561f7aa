/** Describes the webhook endpoints in the OpenAPI document. */
import { z } from '@hono/zod-openapi';
import { hookJson, updatedHookJson } from '../management/hook-json.ts';
import { hookChangeParameters, newHookParameters } from '../management/manage-hook.ts';
import { testParameters } from '../management/test-hook.ts';
import { pageParameters } from '../parameters/paging.ts';
import { bodyOf, hookPath, REFUSED, type RouteDocument, repositoryPath } from './api-documents.ts';

const HOOKS = '/repos/{owner}/{repo}/hooks';
const HOOK = `${HOOKS}/{id}`;
const tags = ['Webhooks'];

export const HOOK_DOCUMENTS: readonly RouteDocument[] = [
  {
    method: 'get',
    path: HOOKS,
    summary: 'List the webhooks of a repository',
    tags,
    request: { params: repositoryPath, query: pageParameters },
    responses: {
      default: REFUSED,
      200: { description: 'A page', content: { 'application/json': { schema: z.array(hookJson) } } },
    },
  },
  {
    method: 'post',
    path: HOOKS,
    summary: 'Create a webhook',
    tags,
    request: { params: repositoryPath, body: bodyOf(newHookParameters) },
    responses: {
      default: REFUSED,
      201: { description: 'The webhook', content: { 'application/json': { schema: hookJson } } },
    },
  },
  {
    method: 'get',
    path: HOOK,
    summary: 'Read a webhook',
    tags,
    request: { params: hookPath },
    responses: {
      default: REFUSED,
      200: { description: 'The webhook', content: { 'application/json': { schema: hookJson } } },
    },
  },
  {
    method: 'patch',
    path: HOOK,
    summary: 'Update a webhook',
    description: 'What is not named stays as it is; url is required.',
    tags,
    request: { params: hookPath, body: bodyOf(hookChangeParameters) },
    responses: {
      default: REFUSED,
      200: { description: 'The webhook without its id', content: { 'application/json': { schema: updatedHookJson } } },
    },
  },
  {
    method: 'delete',
    path: HOOK,
    summary: 'Delete a webhook',
    tags,
    request: { params: hookPath },
    responses: { default: REFUSED, 204: { description: 'Deleted' } },
  },
  {
    method: 'post',
    path: `${HOOK}/tests`,
    summary: 'Send a test delivery',
    description:
      'Sends an ordinary event of a kind that the webhook is subscribed to, waits for the one attempt, 10 s at most, and answers 204 whatever the receiver said; see result and result_code. When the receiver accepts it, a pause of the webhook ends and what waits is sent.',
    tags,
    request: { params: hookPath, body: { ...bodyOf(testParameters), required: false } },
    responses: { default: REFUSED, 204: { description: 'Attempted' } },
  },
];
