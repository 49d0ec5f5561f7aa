/** Stores organizations and their members, and keeps at least one owner in each. Their logins share the people's name space. */
import {
  type BoundStatement,
  conditionalProcedure,
  type Procedure,
  procedure,
  type Store,
  statement,
} from '../../database/store.ts';
import { Failure } from '../../errors.ts';
import type { World } from '../../world.ts';
import { auditStatement, changeAndRecordIn } from './audit-store.ts';
import { checkLogin, checkName, createOwnerId, loginKey } from './login.ts';

export interface Organization {
  /** 24 hex digits, never that of a user. */
  readonly id: string;
  readonly login: string;
  readonly name: string;
  readonly createdAtMs: number;
}

/** `owner` administers, `member` belongs. */
export type MemberRole = 'owner' | 'member';

export interface Member {
  readonly userId: string;
  readonly login: string;
  readonly name: string;
  readonly role: MemberRole;
}

interface OrganizationRow {
  readonly id: string;
  readonly login: string;
  readonly name: string;
  readonly created_at_ms: number;
}

const ORGANIZATION_COLUMNS = 'id, login, name, created_at_ms';

const organizationByLoginSql = statement<OrganizationRow>(
  'organization-by-login',
  `SELECT ${ORGANIZATION_COLUMNS} FROM organizations WHERE login_key = $1`,
);
const organizationsAfterSql = statement<OrganizationRow>(
  'organizations-after',
  `SELECT ${ORGANIZATION_COLUMNS} FROM organizations WHERE login_key > $1 ORDER BY login_key LIMIT $2`,
);
const organizationsOfUserSql = statement<OrganizationRow & { role: MemberRole }>(
  'organizations-of-user',
  `SELECT o.id, o.login, o.name, o.created_at_ms, m.role FROM organization_members m
   JOIN organizations o ON o.id = m.organization_id WHERE m.user_id = $1 ORDER BY o.login_key`,
);
const takeOrganizationLoginSql = statement<{ login_key: string }>(
  'take-organization-login',
  `INSERT INTO logins (login_key, kind, owner_id) VALUES ($1, 'organization', $2)
   ON CONFLICT (login_key) DO NOTHING RETURNING login_key`,
);
const insertOrganizationSql = statement(
  'insert-organization',
  'INSERT INTO organizations (id, login, login_key, name, created_at_ms) VALUES ($1, $2, $3, $4, $5)',
);
// Returns no row for a member who has the role already.
const upsertMemberSql = statement<{ user_id: string }>(
  'upsert-organization-member',
  `INSERT INTO organization_members (organization_id, user_id, role, added_at_ms) VALUES ($1, $2, $3, $4)
   ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role
   WHERE organization_members.role <> excluded.role RETURNING user_id`,
);
const deleteMemberSql = statement<{ user_id: string }>(
  'delete-organization-member',
  'DELETE FROM organization_members WHERE organization_id = $1 AND user_id = $2 RETURNING user_id',
);
const membersOfSql = statement<{ user_id: string; login: string; name: string; role: MemberRole }>(
  'members-of-organization',
  `SELECT m.user_id, u.login, u.name, m.role FROM organization_members m
   JOIN users u ON u.id = m.user_id WHERE m.organization_id = $1 ORDER BY u.login_key`,
);
interface OwnerRow {
  readonly user_id: string;
  readonly is_enabled: number;
}

const ownersOfSql = statement<OwnerRow>(
  'owners-of-organization',
  `SELECT m.user_id, CASE WHEN u.disabled_at_ms IS NULL THEN 1 ELSE 0 END AS is_enabled
   FROM organization_members m JOIN users u ON u.id = m.user_id WHERE m.organization_id = $1 AND m.role = 'owner'`,
);
const memberRoleSql = statement<{ role: MemberRole }>(
  'role-in-organization',
  'SELECT role FROM organization_members WHERE organization_id = $1 AND user_id = $2',
);

function toOrganization(row: OrganizationRow): Organization {
  return { id: row.id, login: row.login, name: row.name, createdAtMs: row.created_at_ms };
}

export async function findOrganizationByLogin(
  store: Pick<Store, 'read'>,
  login: string,
): Promise<Organization | undefined> {
  const [row] = await store.read(organizationByLoginSql, [loginKey(login)]);
  return row && toOrganization(row);
}

export async function listOrganizations(store: Store, limit: number, afterLogin = ''): Promise<Organization[]> {
  return (await store.read(organizationsAfterSql, [loginKey(afterLogin), limit])).map(toOrganization);
}

export async function listOrganizationsOfUser(
  store: Store,
  userId: string,
): Promise<(Organization & { readonly role: MemberRole })[]> {
  return (await store.read(organizationsOfUserSql, [userId])).map((row) => ({
    ...toOrganization(row),
    role: row.role,
  }));
}

export async function listMembers(store: Pick<Store, 'read'>, organizationId: string): Promise<Member[]> {
  const rows = await store.read(membersOfSql, [organizationId]);
  return rows.map((row) => ({ userId: row.user_id, login: row.login, name: row.name, role: row.role }));
}

export async function findMemberRole(
  store: Store,
  organizationId: string,
  userId: string,
): Promise<MemberRole | undefined> {
  return (await store.read(memberRoleSql, [organizationId, userId]))[0]?.role;
}

export interface NewOrganization {
  readonly login: string;
  readonly name: string;
  /** The person who is its first owner. */
  readonly ownerId: string;
  /** Records the creation, and commits with it. */
  readonly audit?: BoundStatement | undefined;
}

interface OrganizationInsert extends NewOrganization {
  readonly id: string;
  readonly nowMs: number;
}

export const insertOrganizationOnce: Procedure<OrganizationInsert, 'created' | 'taken'> = conditionalProcedure(
  import.meta.url,
  'insertOrganizationOnce',
  async (transaction, organization) => {
    const { id, login, name, ownerId, nowMs } = organization;
    const taken = await transaction.run(takeOrganizationLoginSql, [loginKey(login), id]);
    if (taken.length === 0) return 'taken';
    await transaction.run(insertOrganizationSql, [id, login, loginKey(login), name, nowMs]);
    await transaction.run(upsertMemberSql, [id, ownerId, 'owner', nowMs]);
    const audit =
      organization.audit ??
      auditStatement({ kind: 'organization_created', userId: ownerId, details: { login } }, nowMs);
    await transaction.run(audit.statement, audit.parameters);
    return 'created';
  },
);

/** Throws `invalid` for a login that is not allowed, and `conflict` if a person or an organization has it already. */
export async function createOrganization(
  store: Store,
  world: World,
  organization: NewOrganization,
): Promise<Organization> {
  const { login, name, ownerId, audit } = organization;
  checkLogin(login);
  checkName(name);
  const id = createOwnerId(world);
  const nowMs = world.nowMs();
  if ((await store.call(insertOrganizationOnce, { id, login, name, ownerId, audit, nowMs })) === 'taken')
    throw new Failure('conflict', `Cannot create the organization: the login "${login}" is taken`, { field: 'login' });
  return { id, login, name, createdAtMs: nowMs };
}

export interface MemberChange {
  readonly organizationId: string;
  readonly userId: string;
  readonly nowMs: number;
  /** Records the change, with its actor, and commits with it. */
  readonly audit: BoundStatement;
}

/** Whether this person is the last owner who can act: disabled owners do not count. */
function isLastOwner(owners: readonly OwnerRow[], userId: string): boolean {
  const isOwner = owners.some((owner) => owner.user_id === userId);
  return isOwner && !owners.some((owner) => owner.user_id !== userId && owner.is_enabled === 1);
}

/** Returns false if the last owner would become a member: no one could give an organization without an owner to another. */
export const setMemberUnlessLast: Procedure<MemberChange & { readonly role: MemberRole }, boolean> = procedure(
  import.meta.url,
  'setMemberUnlessLast',
  async (transaction, { organizationId, userId, role, nowMs, audit }) => {
    if (role !== 'owner' && isLastOwner(await transaction.run(ownersOfSql, [organizationId]), userId)) return false;
    const change = { statement: upsertMemberSql, parameters: [organizationId, userId, role, nowMs] };
    await changeAndRecordIn(transaction, { change, statements: [audit] });
    return true;
  },
);

/** Throws `conflict` if the last owner would become a member. */
export async function setMember(store: Store, change: MemberChange, role: MemberRole): Promise<void> {
  if (await store.call(setMemberUnlessLast, { ...change, role })) return;
  throw new Failure('conflict', 'Cannot change the role: an organization needs at least one owner');
}

/** Returns `last_owner`, and removes no one, for the last owner. */
export const deleteMemberUnlessLast: Procedure<MemberChange, 'removed' | 'absent' | 'last_owner'> = procedure(
  import.meta.url,
  'deleteMemberUnlessLast',
  async (transaction, { organizationId, userId, audit }) => {
    if (isLastOwner(await transaction.run(ownersOfSql, [organizationId]), userId)) return 'last_owner';
    const removed = await transaction.run(deleteMemberSql, [organizationId, userId]);
    if (removed.length === 0) return 'absent';
    await transaction.run(audit.statement, audit.parameters);
    return 'removed';
  },
);

/** Throws `conflict` for the last owner, `not_found` for a person who is not a member. */
export async function removeMember(store: Store, change: MemberChange): Promise<void> {
  const outcome = await store.call(deleteMemberUnlessLast, change);
  if (outcome === 'last_owner')
    throw new Failure('conflict', 'Cannot remove the member: an organization needs at least one owner');
  if (outcome === 'absent') throw new Failure('not_found', 'Cannot remove the member: no such member');
}
