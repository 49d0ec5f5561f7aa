/** Decides who gets notices: people with a verified address who have not switched them off. */
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import type { Audience, Recipient } from '../../notices/notice.ts';

const REACHABLE = `u.disabled_at_ms IS NULL AND u.email IS NOT NULL AND u.verified_email_key IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM notice_choices n WHERE n.user_id = u.id)`;

const administratorsSql = statement<Recipient>(
  'notice-administrators',
  `SELECT u.name, u.email, u.language FROM users u WHERE u.is_admin = 1 AND ${REACHABLE} ORDER BY u.login_key`,
);
const ownersSql = statement<Recipient>(
  'notice-owners',
  `SELECT u.name, u.email, u.language FROM users u WHERE ${REACHABLE} AND (u.id = $1 OR EXISTS (
     SELECT 1 FROM organization_members m WHERE m.organization_id = $1 AND m.user_id = u.id AND m.role = 'owner'))
   ORDER BY u.login_key`,
);
const readChoiceSql = statement<{ user_id: string }>(
  'read-notice-choice',
  'SELECT user_id FROM notice_choices WHERE user_id = $1',
);
const switchOffSql = statement(
  'switch-notices-off',
  'INSERT INTO notice_choices (user_id, off_since_ms) VALUES ($1, $2) ON CONFLICT (user_id) DO NOTHING',
);
const switchOnSql = statement('switch-notices-on', 'DELETE FROM notice_choices WHERE user_id = $1');

/** The recipients for an owner of a repository are that person, or the owners of that organization. */
export async function listRecipients(store: Pick<Store, 'read'>, audience: Audience): Promise<Recipient[]> {
  return audience.kind === 'administrators'
    ? await store.read(administratorsSql)
    : await store.read(ownersSql, [audience.ownerId]);
}

export async function wantsNotices(store: Store, userId: string): Promise<boolean> {
  return (await store.read(readChoiceSql, [userId])).length === 0;
}

export function switchNoticesStatement(userId: string, choice: 'on' | 'off', nowMs: number): BoundStatement {
  return choice === 'on'
    ? { statement: switchOnSql, parameters: [userId] }
    : { statement: switchOffSql, parameters: [userId, nowMs] };
}
