/** Creates a repository, after checking its name, its owner and the limit of the owner. */
import { z } from '@hono/zod-openapi';
import type { Store } from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { Owner } from '../../identity.ts';
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Actor } from '../../operations/operation.ts';
import type { World } from '../../world.ts';
import { flagParameter } from '../parameters/parameters.ts';
import { nextNumber } from './number-store.ts';
import { fullNameOf, type Repository } from './repository.ts';
import { insertRepository } from './repository-store.ts';

const PATH = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/;
const pathText = z
  .string()
  .regex(PATH, 'must be 1 to 100 letters, digits, dots, dashes and underscores, and not start with a dot or dash')
  .refine((value) => !/\.(git|atom)$/i.test(value), 'must not end in .git or .atom');

const urlText = z.url({ protocol: /^https?$/, error: 'must be an http or https address' }).max(2048);

export const repositoryParameters = z
  .object({
    name: z.string().trim().min(1).max(255),
    path: pathText.optional(),
    description: z.string().max(2000, 'must be at most 2000 characters').default(''),
    private: flagParameter.default(false).openapi({ default: false }),
    default_branch: z
      .string()
      .max(255)
      .regex(/^[^\s~^:?*[\\]+$/, 'must be the name of a branch')
      .default('main'),
    web_url: urlText
      .optional()
      .openapi({ description: 'Where people see it; defaults to an address of this service.' }),
    http_url: urlText.optional().openapi({ description: 'Where git fetches it over HTTP.' }),
    ssh_url: z.string().max(2048).optional().openapi({ description: 'Where git fetches it over SSH.' }),
  })
  .openapi('NewRepository');

export type RepositoryParameters = z.output<typeof repositoryParameters>;

export interface CreateRepositoryDependencies {
  readonly store: Store;
  readonly world: World;
  readonly baseUrl: string;
  readonly auditChange: AuditChange;
  /** How many repositories a person or an organization may have. */
  readonly repositoriesPerOwner: number;
}

export interface NewRepositoryPlace {
  readonly owner: Owner;
  readonly actor: Actor;
}

/** Throws `conflict` if the owner has a repository of that path, or as many as allowed. */
export async function createRepository(
  dependencies: CreateRepositoryDependencies,
  { owner, actor }: NewRepositoryPlace,
  parameters: RepositoryParameters,
): Promise<Repository> {
  const path = parameters.path ?? parsePath(parameters.name);
  const nowMs = dependencies.world.nowMs();
  const webUrl = parameters.web_url ?? `${dependencies.baseUrl}/${owner.login}/${path}`;
  const repository: Repository = {
    id: await nextNumber(dependencies.store, 'repository'),
    ownerKind: owner.kind,
    ownerId: owner.id,
    ownerLogin: owner.login,
    name: parameters.name,
    path,
    description: parameters.description,
    isPrivate: parameters.private,
    defaultBranch: parameters.default_branch,
    webUrl,
    httpUrl: parameters.http_url ?? `${webUrl}.git`,
    sshUrl: parameters.ssh_url ?? `git@${new URL(webUrl).hostname}:${owner.login}/${path}.git`,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
  const details = { repository: fullNameOf(repository) };
  const record = dependencies.auditChange({ kind: 'repository_created', actor, details }, nowMs);
  const maximum = dependencies.repositoriesPerOwner;
  const outcome = await insertRepository(dependencies.store, repository, { maximum, statements: [record] });
  if (outcome === 'full') throw refuseMore(owner, maximum);
  if (outcome === 'inserted') return repository;
  throw new Failure('conflict', `Cannot create the repository: "${owner.login}/${path}" exists already`, {
    field: 'path',
  });
}

function refuseMore({ login }: Owner, maximum: number): Failure {
  return new Failure(
    'conflict',
    `Cannot create the repository: "${login}" has ${maximum}, the most that an owner may have; delete one first`,
  );
}

/** Takes the path from the name if none is given. A name may be any text, but a path may not. */
function parsePath(name: string): string {
  const parsed = pathText.safeParse(name.replace(/\s+/g, '-'));
  if (parsed.success) return parsed.data;
  throw new Failure('invalid', `Cannot create the repository: path must be given, "${name}" cannot be one`, {
    field: 'path',
  });
}
