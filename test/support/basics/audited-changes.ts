import { auditChange as recordChange } from '../../../src/authorization/administration/administration.ts';
import type { AuditChange } from '../../../src/operations/audit-change.ts';

/** The program hands this function to areas whose changes the audit log records. */
export const auditChange: AuditChange = (change, nowMs) => recordChange(change, nowMs);
