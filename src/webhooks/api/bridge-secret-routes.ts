/** Serves the secrets with which GitHub, GitLab and Gitea sign the webhooks that come in. */
import { type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { Failure } from '../../errors.ts';
import { createRoutes } from '../../http/routes.ts';
import type { IdentityEnv } from '../../http/scope-middleware.ts';
import { readActor } from '../../operations/read-actor.ts';
import { BRIDGE_NAMES, type BridgeName } from '../bridges/bridges.ts';
import { bridgeAssociatedData, listBridges, putBridgeSecret, removeBridgeSecret } from '../intake/bridge-store.ts';
import type { ManagementDependencies } from '../management/management.ts';
import { recordRepositoryChange } from '../management/record-change.ts';
import { toOffsetTime } from '../parameters/json-body.ts';
import { parseKnownParameters, readParameters, refuseParameters } from '../parameters/parameters.ts';
import type { Repository } from '../repositories/repository.ts';
import { refuseDeleted } from '../repositories/repository-access.ts';
import { bodyOf, describeRoutes, REFUSED, type RouteDocument, repositoryPath } from './api-documents.ts';

const SCOPE = 'all_hook';
const SECRET_BYTES = 24;

const secretParameters = z
  .object({
    secret: z
      .string()
      .min(16, 'must be at least 16 characters')
      .max(255, 'must be at most 255 characters')
      .optional()
      .openapi({ description: 'Generated if absent.' }),
  })
  .openapi('BridgeSecret');

const bridgeJson = z.object({ host: z.enum(BRIDGE_NAMES), url: z.string(), created_at: z.string() }).openapi('Bridge');
const newBridgeJson = bridgeJson.extend({ secret: z.string() }).openapi('NewBridge');

export function createBridgeRoutes(dependencies: ManagementDependencies): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeRoutes(routes.openAPIRegistry, DOCUMENTS);
  routes.get('/repos/:owner/:repo/bridges', dependencies.requireScope(SCOPE), async (c) => {
    const { owner, repo } = c.req.param();
    const repository = await dependencies.access.findAdministered(c.get('identity'), owner, repo);
    // Without pages, since there are only a few hosts.
    await refuseParameters(c, 'list the bridges');
    const bridges = await listBridges(dependencies.store, repository.id);
    const url = `${dependencies.baseUrl}/api/v5/repos/${owner}/${repo}/events`;
    return c.json(bridges.map(({ host, createdAtMs }) => ({ host, url, created_at: toOffsetTime(createdAtMs) })));
  });
  routes.put('/repos/:owner/:repo/bridges/:host', dependencies.requireScope(SCOPE), async (c) => {
    const { owner, repo } = c.req.param();
    const host = parseHost(c.req.param('host'));
    const repository = await dependencies.access.findAdministered(c.get('identity'), owner, repo);
    const parameters = parseKnownParameters(secretParameters, await readParameters(c), 'set the secret of the bridge');
    const secret = parameters.secret ?? Buffer.from(dependencies.world.randomBytes(SECRET_BYTES)).toString('base64url');
    const nowMs = dependencies.world.nowMs();
    const ciphertext = dependencies.cipher.encrypt(secret, bridgeAssociatedData(repository.id, host));
    const record = describeChange(dependencies, 'bridge_changed', { repository, host, c, nowMs });
    const secretOfHost = { repositoryId: repository.id, host, ciphertext, nowMs };
    await refuseDeleted(repository, putBridgeSecret(dependencies.store, secretOfHost, [record]));
    const url = `${dependencies.baseUrl}/api/v5/repos/${owner}/${repo}/events`;
    return c.json({ host, url, created_at: toOffsetTime(nowMs), secret });
  });
  routes.delete('/repos/:owner/:repo/bridges/:host', dependencies.requireScope(SCOPE), async (c) => {
    const { owner, repo } = c.req.param();
    const host = parseHost(c.req.param('host'));
    const repository = await dependencies.access.findAdministered(c.get('identity'), owner, repo);
    await refuseParameters(c, 'delete the bridge');
    const nowMs = dependencies.world.nowMs();
    const record = describeChange(dependencies, 'bridge_deleted', { repository, host, c, nowMs });
    if (await removeBridgeSecret(dependencies.store, { repositoryId: repository.id, host }, [record]))
      return c.body(null, 204);
    throw new Failure('not_found', `Bridge not found: ${owner}/${repo} accepts no webhooks of ${host}`, {
      errorCode: 1003,
      errorCodeName: 'NOT_EXIST',
    });
  });
  return routes;
}

interface BridgeChange {
  readonly repository: Repository;
  readonly host: BridgeName;
  readonly c: Context<IdentityEnv>;
  readonly nowMs: number;
}

function describeChange(
  dependencies: ManagementDependencies,
  kind: 'bridge_changed' | 'bridge_deleted',
  { repository, host, c, nowMs }: BridgeChange,
) {
  return recordRepositoryChange(dependencies, kind, { repository, actor: readActor(c), nowMs, details: { host } });
}

function parseHost(host: string): BridgeName {
  const name = BRIDGE_NAMES.find((candidate) => candidate === host);
  if (name !== undefined) return name;
  throw new Failure('invalid', `Parameter type error: host must be one of ${BRIDGE_NAMES.join(', ')}, got "${host}"`, {
    field: 'host',
  });
}

const tags = ['Events'];
const params = repositoryPath.extend({ host: z.enum(BRIDGE_NAMES) });

const DOCUMENTS: readonly RouteDocument[] = [
  {
    method: 'get',
    path: '/repos/{owner}/{repo}/bridges',
    summary: 'List the code hosts whose webhooks are accepted',
    tags,
    request: { params: repositoryPath },
    responses: {
      default: REFUSED,
      200: { description: 'All', content: { 'application/json': { schema: z.array(bridgeJson) } } },
    },
  },
  {
    method: 'put',
    path: '/repos/{owner}/{repo}/bridges/{host}',
    summary: 'Accept the webhooks of a code host, with this secret',
    tags,
    request: { params, body: bodyOf(secretParameters) },
    responses: {
      default: REFUSED,
      200: {
        description: 'The only answer with the secret',
        content: { 'application/json': { schema: newBridgeJson } },
      },
    },
  },
  {
    method: 'delete',
    path: '/repos/{owner}/{repo}/bridges/{host}',
    summary: 'Stop accepting the webhooks of a code host',
    tags,
    request: { params },
    responses: { default: REFUSED, 204: { description: 'Deleted' } },
  },
];
