/** Serves repositories under `/api/v5`: create, show, list, delete. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import { setPageHeaders } from '../../http/page-headers.ts';
import { createRoutes } from '../../http/routes.ts';
import type { IdentityEnv } from '../../http/scope-middleware.ts';
import { readActor } from '../../operations/read-actor.ts';
import { deleteRepository } from '../management/delete-repository.ts';
import type { ManagementDependencies } from '../management/management.ts';
import { pageParameters, readPage } from '../parameters/paging.ts';
import { parseParameters, readParameters } from '../parameters/parameters.ts';
import {
  type CreateRepositoryDependencies,
  createRepository,
  type NewRepositoryPlace,
  repositoryParameters,
} from '../repositories/create-repository.ts';
import { checkUnlimited } from '../repositories/repository-access.ts';
import { repositoryJson, toRepositoryJson } from '../repositories/repository-json.ts';
import { countRepositoriesOfOwner, listRepositoriesOfOwner } from '../repositories/repository-store.ts';
import { bodyOf, describeRoutes, REFUSED, type RouteDocument, repositoryPath } from './api-documents.ts';

const SCOPE = 'all_projects';
const created = { description: 'The repository', content: { 'application/json': { schema: repositoryJson } } };

export function createRepositoryRoutes(dependencies: ManagementDependencies): OpenAPIHono<IdentityEnv> {
  const routes = createRoutes<IdentityEnv>();
  describeRoutes(routes.openAPIRegistry, DOCUMENTS);
  addCreation(routes, dependencies);
  addReading(routes, dependencies);
  routes.delete('/repos/:owner/:repo', dependencies.requireScope(SCOPE), async (c) => {
    const { owner, repo } = c.req.param();
    const repository = await dependencies.access.findAdministered(c.get('identity'), owner, repo);
    await deleteRepository(dependencies, repository, readActor(c));
    return c.body(null, 204);
  });
  return routes;
}

function addCreation(routes: OpenAPIHono<IdentityEnv>, dependencies: ManagementDependencies): void {
  routes.post('/user/repos', dependencies.requireScope(SCOPE), async (c) => {
    const identity = c.get('identity');
    checkUnlimited(identity);
    const owner = await dependencies.owners.findOwner(identity.login);
    // The login of an application that acts for itself is its client id, and a person may have that login too.
    if (owner === undefined || owner.id !== identity.userId) throw refuseOwner(identity.login);
    return c.json(await create(dependencies, { owner, actor: readActor(c) }, await readParameters(c)), 201);
  });
  routes.post('/orgs/:org/repos', dependencies.requireScope(SCOPE), async (c) => {
    checkUnlimited(c.get('identity'));
    const owner = await dependencies.owners.findOwner(c.req.param('org'));
    if (owner?.kind !== 'organization') throw refuseOwner(c.req.param('org'));
    if (!(await dependencies.owners.canAdminister(c.get('identity'), owner)))
      throw new Failure('forbidden', '403 Forbidden - Unauthorized access');
    return c.json(await create(dependencies, { owner, actor: readActor(c) }, await readParameters(c)), 201);
  });
}

function addReading(routes: OpenAPIHono<IdentityEnv>, dependencies: ManagementDependencies): void {
  routes.get('/user/repos', dependencies.requireScope(SCOPE), async (c) => {
    const page = readPage(await readParameters(c), 'list the repositories');
    const { userId } = c.get('identity');
    checkUnlimited(c.get('identity'));
    const [repositories, total] = await Promise.all([
      listRepositoriesOfOwner(dependencies.store, userId, page),
      countRepositoriesOfOwner(dependencies.store, userId),
    ]);
    setPageHeaders(c, page, total, dependencies.baseUrl);
    return c.json(repositories.map((repository) => toRepositoryJson(repository, dependencies.baseUrl)));
  });
  routes.get('/repos/:owner/:repo', dependencies.requireScope(SCOPE), async (c) => {
    const { owner, repo } = c.req.param();
    return c.json(
      toRepositoryJson(await dependencies.access.findVisible(c.get('identity'), owner, repo), dependencies.baseUrl),
    );
  });
}

async function create(
  dependencies: CreateRepositoryDependencies,
  place: NewRepositoryPlace,
  values: Readonly<Record<string, unknown>>,
) {
  const parameters = parseParameters(repositoryParameters, values, 'create the repository');
  return toRepositoryJson(await createRepository(dependencies, place, parameters), dependencies.baseUrl);
}

function refuseOwner(login: string): Failure {
  return new Failure('not_found', `Cannot create the repository: there is no organization "${login}"`, {
    errorCode: 1003,
    errorCodeName: 'NOT_EXIST',
  });
}

const tags = ['Repositories'];
const org = z.object({ org: z.string() });
const body = bodyOf(repositoryParameters);

const DOCUMENTS: readonly RouteDocument[] = [
  {
    method: 'post',
    path: '/user/repos',
    summary: 'Create a repository of your own',
    tags,
    request: { body },
    responses: { default: REFUSED, 201: created },
  },
  {
    method: 'get',
    path: '/user/repos',
    summary: 'List your repositories',
    tags,
    request: { query: pageParameters },
    responses: {
      default: REFUSED,
      200: { description: 'A page', content: { 'application/json': { schema: z.array(repositoryJson) } } },
    },
  },
  {
    method: 'post',
    path: '/orgs/{org}/repos',
    summary: 'Create a repository of an organization',
    tags,
    request: { params: org, body },
    responses: { default: REFUSED, 201: created },
  },
  {
    method: 'get',
    path: '/repos/{owner}/{repo}',
    summary: 'Read a repository',
    tags,
    request: { params: repositoryPath },
    responses: { default: REFUSED, 200: created },
  },
  {
    method: 'delete',
    path: '/repos/{owner}/{repo}',
    summary: 'Delete a repository with its webhooks',
    tags,
    request: { params: repositoryPath },
    responses: { default: REFUSED, 204: { description: 'Deleted' } },
  },
];
