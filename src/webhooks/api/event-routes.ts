/** Accepts published events over HTTP (202), and webhooks of other code hosts with their secret. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure, isFailure } from '../../errors.ts';
import { parseJsonObject } from '../../http/body-fields.ts';
import { parsePairs } from '../../http/parser-limits.ts';
import { createRoutes } from '../../http/routes.ts';
import type { IdentityEnv } from '../../http/scope-middleware.ts';
import type { Json } from '../bridges/bridge.ts';
import { findBridge, type RecognisedBridge, translateWebhook } from '../bridges/bridges.ts';
import { eventSchema, foreignEventSchema } from '../events/event.ts';
import { bridgeAssociatedData, findBridgeCiphertext } from '../intake/bridge-store.ts';
import { eventReceiptFields } from '../intake/event-receipt.ts';
import type { ManagementDependencies } from '../management/management.ts';
import { publishEvent } from '../management/publish-event.ts';
import { parseParameters } from '../parameters/parameters.ts';
import type { Repository } from '../repositories/repository.ts';
import { REFUSED, repositoryPath } from './api-documents.ts';

const PATH = '/repos/:owner/:repo/events';
const MAX_KEY_LENGTH = 255;

/** The schema's public name stays: generated clients use it. */
const answerJson = z.object(eventReceiptFields).openapi('Announcement');

const IGNORED = { ignored: true, reason: 'Hooks cannot subscribe to this kind of event' };
const ignoredJson = z
  .object({
    ignored: z.literal(true).openapi({ description: 'No hook receives anything' }),
    reason: z.string().openapi({ description: 'Why nothing was published', example: IGNORED.reason }),
  })
  .openapi('IgnoredEvent');

export function createEventRoutes(dependencies: ManagementDependencies): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeRoute(routes);
  routes.post(PATH, async (c, next) => {
    const recognised = findBridge((name) => c.req.header(name));
    return recognised === undefined ? await next() : await takeFromBridge(c, dependencies, recognised);
  });
  routes.post(PATH, dependencies.requireScope('events:write'), async (c) => {
    const { owner, repo } = c.req.param();
    const repository = await dependencies.access.findAdministered(c.get('identity'), owner, repo);
    dependencies.intake.checkRoom(repository, Number(c.req.header('content-length') ?? 0));
    const payload = parseJsonObject(await c.req.text(), c.req.header('content-type') ?? '');
    const event = parseParameters(eventSchema, payload, 'publish the event');
    const idempotencyKey = readKey(c.req.header('idempotency-key'));
    releaseBody(c);
    return c.json(await publishEvent(dependencies, { repository, event, source: 'api', idempotencyKey }), 202);
  });
  return routes;
}

async function takeFromBridge(
  c: Context<IdentityEnv>,
  dependencies: ManagementDependencies,
  recognised: RecognisedBridge,
): Promise<Response> {
  const { name, bridge } = recognised;
  const header = (headerName: string) => c.req.header(headerName);
  const { owner = '', repo = '' } = c.req.param();
  const { repository, secret } = await findBridgeSecret(dependencies, owner, repo, name);
  // The signature covers the whole body, so the request is unauthenticated until the body is read. Under memory pressure such a
  // body is dropped first.
  c.get('evictBodyFirst')?.();
  const body = Buffer.from(await c.req.arrayBuffer());
  if (!bridge.verifies(secret, { header, body, nowMs: dependencies.world.nowMs() })) throw refuseBridge(name);
  const payload = parseJsonObject(readPayload(c, body), c.req.header('content-type') ?? '') as Json;
  const translated = translateWebhook(recognised, header, payload);
  if (translated === undefined) return c.json(IGNORED);
  const event = parseParameters(foreignEventSchema, translated, `translate the event from ${name}`);
  const deliveryId = readKey(bridge.deliveryId(header));
  const idempotencyKey = deliveryId && `${name}:${deliveryId}`;
  releaseBody(c);
  return c.json(await publishEvent(dependencies, { repository, event, source: name, idempotencyKey }), 202);
}

/**
 * Returns the memory budget of the body before the commit: the intake limits the events that wait, and a slow commit must not use
 * up the budget for bodies of other routes.
 */
function releaseBody(c: Context<IdentityEnv>): void {
  c.get('releaseBody')?.();
}

/** A code host may send the JSON itself, or a form with the JSON in the field `payload`. */
function readPayload(c: Context, body: Buffer): string {
  const text = body.toString('utf8');
  const isForm = c.req.header('content-type')?.startsWith('application/x-www-form-urlencoded') ?? false;
  return isForm ? (parsePairs(text).get('payload') ?? '') : text;
}

/** Answers alike if the repository or the bridge is missing, so that an unauthenticated caller cannot distinguish them. */
async function findBridgeSecret(
  dependencies: ManagementDependencies,
  owner: string,
  path: string,
  name: string,
): Promise<{ repository: Repository; secret: Buffer }> {
  const repository = await dependencies.access.find(owner, path).catch(passNotFound);
  const ciphertext = repository && (await findBridgeCiphertext(dependencies.store, repository.id, name));
  if (repository === undefined || ciphertext === undefined) throw refuseBridge(name);
  return { repository, secret: dependencies.cipher.decrypt(ciphertext, bridgeAssociatedData(repository.id, name)) };
}

/** Passes other errors on: code hosts send again after a 5xx, such as in a database outage, but disable a webhook after a 401. */
function passNotFound(error: unknown): undefined {
  if (!isFailure(error) || error.code !== 'not_found') throw error;
}

function refuseBridge(name: string): Failure {
  return new Failure(
    'unauthenticated',
    `Cannot take the webhook of ${name}: its signature or token matches no bridge of this repository`,
  );
}

function readKey(key: string | undefined): string | undefined {
  if (key === undefined || key === '') return undefined;
  if (key.length <= MAX_KEY_LENGTH) return key;
  throw new Failure(
    'invalid',
    `Cannot publish the event: Idempotency-Key must be at most ${MAX_KEY_LENGTH} characters`,
    {
      field: 'Idempotency-Key',
    },
  );
}

function describeRoute({ openAPIRegistry }: OpenAPIHono<IdentityEnv>): void {
  openAPIRegistry.registerPath({
    method: 'post',
    path: '/repos/{owner}/{repo}/events',
    summary: 'Publish an event of a repository',
    description:
      'Answers once the event and a delivery for every subscribed webhook are stored. Also takes the webhooks of GitLab, Gitea, Forgejo and GitHub, recognised by their headers and checked with the secret of the bridge.',
    tags: ['Events'],
    request: {
      params: repositoryPath,
      headers: z.object({
        'Idempotency-Key': z
          .string()
          .max(MAX_KEY_LENGTH)
          .optional()
          .openapi({ description: 'A repetition within 24 hours answers as the first did and sends nothing.' }),
      }),
      body: { content: { 'application/json': { schema: eventSchema } }, required: true },
    },
    responses: {
      default: REFUSED,
      200: {
        description: 'A webhook of another code host about something that is no event here, such as a ping',
        content: { 'application/json': { schema: ignoredJson } },
      },
      202: { description: 'Stored', content: { 'application/json': { schema: answerJson } } },
    },
  });
}
