/** All operations on people, organizations and the audit log, and how other areas record theirs. */
import type { AuditChange } from '../../operations/audit-change.ts';
import type { Implementation } from '../../operations/operation.ts';
import { implementAudit } from './audit-operations.ts';
import { implementOrganizations } from './organization-operations.ts';
import { implementPeople } from './people-operations.ts';
import { type PeopleDependencies, recordStatement } from './person.ts';

export function implementAdministration(dependencies: PeopleDependencies): Implementation[] {
  return [...implementPeople(dependencies), ...implementOrganizations(dependencies), ...implementAudit(dependencies)];
}

/** What concerns no account has its actor as the account too: so a person finds it under the own activity. */
export const auditChange: AuditChange = ({ kind, actor, details }, nowMs) =>
  recordStatement({ kind, userId: actor.userId, details }, actor, nowMs);
