/** Collects all operations on people, organizations, applications and the audit log. */
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Implementation } from '../../operations/operation.ts';
import type { LinkDependencies } from '../password-links/password-link.ts';
import { implementApplications } from './application-operations.ts';
import { implementAudit } from './audit-operations.ts';
import { implementInvitations } from './invitation-operations.ts';
import { implementOrganizations } from './organization-operations.ts';
import { implementPeople } from './people-operations.ts';
import { type PeopleDependencies, recordStatement } from './person.ts';
import { implementSigningKeys } from './signing-key-operations.ts';
import { implementTokens } from './token-operations.ts';

export function implementAdministration(dependencies: PeopleDependencies & LinkDependencies): Implementation[] {
  return [
    ...implementPeople(dependencies),
    ...implementInvitations(dependencies),
    ...implementTokens(dependencies),
    ...implementOrganizations(dependencies),
    ...implementApplications(dependencies),
    ...implementSigningKeys(dependencies),
    ...implementAudit(dependencies),
  ];
}

/** Records an event that concerns no account under the actor's account, so that the actor finds it in their activity. */
export const auditChange: AuditChange = ({ kind, actor, details }, nowMs) =>
  recordStatement({ kind, userId: actor.userId, details }, actor, nowMs);
