/** Writes a repository as JSON in GitCode's format. */
import { z } from '@hono/zod-openapi';
import { toOffsetTime } from '../parameters/json-body.ts';
import { fullNameOf, type Repository } from './repository.ts';

/** A repository in GitCode's format; counts that only a code host has are zero. */
export const repositoryJson = z
  .object({
    id: z.int(),
    full_name: z.string(),
    human_name: z.string(),
    namespace: z.object({ path: z.string(), name: z.string(), type: z.enum(['personal', 'organization']) }),
    owner: z.object({ id: z.string(), login: z.string(), type: z.enum(['User', 'Organization']) }),
    path: z.string(),
    name: z.string(),
    description: z.string(),
    private: z.boolean(),
    public: z.boolean(),
    fork: z.boolean(),
    url: z.string(),
    html_url: z.string(),
    web_url: z.string(),
    http_url_to_repo: z.string(),
    ssh_url_to_repo: z.string(),
    hooks_url: z.string(),
    default_branch: z.string(),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .openapi('Repository');

export function toRepositoryJson(repository: Repository, baseUrl: string): z.output<typeof repositoryJson> {
  const { ownerLogin } = repository;
  const isPersonal = repository.ownerKind === 'user';
  const url = `${baseUrl}/api/v5/repos/${fullNameOf(repository)}`;
  return {
    id: repository.id,
    full_name: fullNameOf(repository),
    human_name: `${ownerLogin}/${repository.name}`,
    namespace: { path: ownerLogin, name: ownerLogin, type: isPersonal ? 'personal' : 'organization' },
    owner: { id: repository.ownerId, login: ownerLogin, type: isPersonal ? 'User' : 'Organization' },
    path: repository.path,
    name: repository.name,
    description: repository.description,
    private: repository.isPrivate,
    public: !repository.isPrivate,
    fork: false,
    url,
    html_url: repository.webUrl,
    web_url: repository.webUrl,
    http_url_to_repo: repository.httpUrl,
    ssh_url_to_repo: repository.sshUrl,
    hooks_url: `${url}/hooks`,
    default_branch: repository.defaultBranch,
    created_at: toOffsetTime(repository.createdAtMs),
    updated_at: toOffsetTime(repository.updatedAtMs),
  };
}
