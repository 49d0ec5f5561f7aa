/** Implements the operations on organizations and their members, who are added at once, without an invitation. */
import { z } from '@hono/zod-openapi';
import { Failure } from '../../errors.ts';
import { type Actor, describeOperation, type Implementation, implement } from '../../operations/operation.ts';
import { textPage } from '../../operations/paging.ts';
import {
  createOrganization,
  findOrganizationByLogin,
  listMembers,
  listOrganizations,
  type MemberChange,
  type MemberRole,
  type Organization,
  removeMember,
  setMember,
} from '../accounts/organization-store.ts';
import { findPerson, type PeopleDependencies, recordStatement } from './person.ts';

const about = { tag: 'Organizations', scope: 'admin:people' } as const;
const name = z.string().min(1).max(200);
const organizationSchema = z
  .object({ id: z.string(), login: z.string(), name: z.string(), createdAtMs: z.int() })
  .openapi('Organization');
const memberSchema = z
  .object({ userId: z.string(), login: z.string(), name: z.string(), role: z.enum(['owner', 'member']) })
  .openapi('Member');
const ofMember = z.object({ organization: name, login: name });

export const listAllOrganizations = describeOperation({
  ...about,
  name: 'listOrganizations',
  method: 'get',
  path: '/organizations',
  summary: 'List organizations in the order of their logins',
  input: z.object({
    ...textPage,
  }),
  output: z
    .object({ organizations: z.array(organizationSchema), next: z.string().nullable() })
    .openapi('OrganizationsPage'),
});
export const addOrganization = describeOperation({
  ...about,
  name: 'createOrganization',
  method: 'post',
  path: '/organizations',
  summary: 'Create an organization',
  input: z.object({
    login: name,
    name: name.optional().openapi({ description: 'The login if absent' }),
    owner: name.openapi({ description: 'Login of the person who becomes its owner' }),
  }),
  output: organizationSchema,
});
export const listOrganizationMembers = describeOperation({
  ...about,
  name: 'listMembers',
  method: 'get',
  path: '/organizations/{organization}/members',
  summary: 'List the members of an organization',
  input: z.object({ organization: name }),
  output: z.object({ members: z.array(memberSchema) }).openapi('Members'),
});
export const addMember = describeOperation({
  ...about,
  name: 'setMember',
  method: 'put',
  path: '/organizations/{organization}/members/{login}',
  summary: 'Add a member, or change their role',
  input: ofMember.extend({ role: z.enum(['owner', 'member']).default('member') }),
  output: ofMember.extend({ role: z.enum(['owner', 'member']) }).openapi('Membership'),
});
export const dropMember = describeOperation({
  ...about,
  name: 'removeMember',
  method: 'delete',
  path: '/organizations/{organization}/members/{login}',
  summary: 'Remove a member',
  input: ofMember,
  output: ofMember.openapi('FormerMember'),
});

export function implementOrganizations(dependencies: PeopleDependencies): Implementation[] {
  const { store, world } = dependencies;
  return [
    implement(listAllOrganizations, async ({ after, limit }) => {
      const found = await listOrganizations(store, limit + 1, after);
      const organizations = found.slice(0, limit);
      return { organizations, next: found.length > limit ? (organizations.at(-1)?.login ?? null) : null };
    }),
    implement(addOrganization, async (input, { actor }) => {
      const { id: ownerId } = await findPerson(store, input.owner);
      const event = { kind: 'organization_created', userId: ownerId, details: { login: input.login } } as const;
      const audit = recordStatement(event, actor, world.nowMs());
      return await createOrganization(store, world, { ...input, name: input.name ?? input.login, ownerId, audit });
    }),
    implement(listOrganizationMembers, async ({ organization }) => {
      const { id } = await findOrganization(dependencies, organization);
      return { members: await listMembers(store, id) };
    }),
    implement(addMember, async (input, { actor }) => {
      await setMember(store, await prepareChange(dependencies, actor, input), input.role);
      return input;
    }),
    implement(dropMember, async (input, { actor }) => {
      await removeMember(store, await prepareChange(dependencies, actor, { ...input, role: 'none' }));
      return input;
    }),
  ];
}

async function prepareChange(
  dependencies: PeopleDependencies,
  actor: Actor,
  { organization, login, role }: z.infer<typeof ofMember> & { readonly role: MemberRole | 'none' },
): Promise<MemberChange> {
  const { id: organizationId } = await findOrganization(dependencies, organization);
  const { id: userId } = await findPerson(dependencies.store, login);
  const nowMs = dependencies.world.nowMs();
  const event = { kind: 'organization_changed', userId, details: { organization: organizationId, role } } as const;
  return { organizationId, userId, nowMs, audit: recordStatement(event, actor, nowMs) };
}

async function findOrganization({ store }: PeopleDependencies, login: string): Promise<Organization> {
  const organization = await findOrganizationByLogin(store, login);
  if (organization === undefined) throw new Failure('not_found', `No organization has the login "${login}"`);
  return organization;
}
