/**
 * Stores sessions of signed-in browsers, which expire after 12 idle hours or 14 days, and limits their number. The cookie holds
 * 256 random bits; the table keeps only their SHA-256, so that a copy of the database signs in no one. A session is valid only
 * while its person is enabled and the credential generation is the one under which the person signed in.
 */
import { createHash } from 'node:crypto';
import { type BoundStatement, type Store, statement } from '../../database/store.ts';
import { MAX_SKEW_MS } from '../../steady-clock.ts';
import type { World } from '../../world.ts';
import { auditStatement, changeAndRecord } from './audit-store.ts';
import { toUser, type User, type UserRow } from './user-store.ts';

export const SESSION_IDLE_MS = 12 * 3_600_000;
const LONGEST_MS = 14 * 24 * 3_600_000;
/** `last_seen_at_ms` is written at most once in this time. */
const SEEN_STEP_MS = 5 * 60_000;

/** How the person authenticated. */
export type SignInMethod = 'password' | 'password+totp' | 'password+recovery' | 'passkey' | 'upstream' | 'setup';

export interface StoredSession {
  readonly id: string;
  readonly user: User;
  readonly method: SignInMethod;
  readonly authTimeMs: number;
  readonly lastSeenAtMs: number;
}

/** A session as the sessions page shows it. */
export interface SessionEntry {
  readonly id: string;
  readonly method: SignInMethod;
  readonly authTimeMs: number;
  readonly lastSeenAtMs: number;
  readonly address: string;
  readonly userAgent: string;
}

interface EntryRow {
  readonly id: string;
  readonly method: SignInMethod;
  readonly auth_time_ms: number;
  readonly last_seen_at_ms: number;
  readonly address: string;
  readonly user_agent: string;
}

interface SessionRow extends UserRow {
  readonly session_id: string;
  readonly method: SignInMethod;
  readonly auth_time_ms: number;
  readonly last_seen_at_ms: number;
}

const insertSessionSql = statement(
  'insert-session',
  `INSERT INTO sessions (id, token_hash, user_id, user_epoch, method, auth_time_ms, last_seen_at_ms, address, user_agent)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
);
const liveSessionSql = statement<SessionRow>(
  'live-session',
  `SELECT s.id AS session_id, s.method, s.auth_time_ms, s.last_seen_at_ms, u.id, u.login, u.name, u.email,
     u.verified_email_key, u.is_admin,
     u.created_at_ms, u.disabled_at_ms, u.password_changed_at_ms, u.epoch, u.language, u.delegated_access,
     u.administrator_since_ms
   FROM sessions s JOIN users u ON u.id = s.user_id
   WHERE s.token_hash = $1 AND s.last_seen_at_ms > $2 AND s.auth_time_ms > $3 AND u.disabled_at_ms IS NULL
     AND s.user_epoch = u.epoch`,
);
const seeSessionSql = statement('see-session', 'UPDATE sessions SET last_seen_at_ms = $2 WHERE id = $1');
const sessionsOfUserSql = statement<EntryRow>(
  'sessions-of-user',
  `SELECT s.id, s.method, s.auth_time_ms, s.last_seen_at_ms, s.address, s.user_agent
   FROM sessions s JOIN users u ON u.id = s.user_id AND u.epoch = s.user_epoch
   WHERE s.user_id = $1 AND s.last_seen_at_ms > $2 AND s.auth_time_ms > $3 ORDER BY s.last_seen_at_ms DESC, s.id`,
);
// Compares the user too, so that a guessed id cannot end another person's session.
const deleteSessionSql = statement<{ id: string }>(
  'delete-session',
  'DELETE FROM sessions WHERE id = $1 AND user_id = $2 RETURNING id',
);
const deleteOtherSessionsSql = statement<{ id: string }>(
  'delete-other-sessions',
  'DELETE FROM sessions WHERE user_id = $1 AND id <> $2 RETURNING id',
);
// Locks the row, so that concurrent sign-ins of one person run one after the other and each counts the sessions before it.
const lockPersonSql = statement('lock-person-of-session', 'UPDATE users SET epoch = epoch WHERE id = $1');
// The new session stays. Rows dated in the future by a wrong clock are deleted first; otherwise they would stay the newest.
const deleteSurplusSessionsSql = statement(
  'delete-surplus-sessions',
  `DELETE FROM sessions WHERE user_id = $1 AND id IN (
     SELECT id FROM sessions WHERE user_id = $1
     ORDER BY CASE WHEN id = $3 THEN 0 ELSE 1 END,
       CASE WHEN last_seen_at_ms - ${MAX_SKEW_MS} > $4 THEN 0 ELSE last_seen_at_ms END DESC, id LIMIT 1000 OFFSET $2)`,
);
const keepSessionSql = statement(
  'keep-session',
  'UPDATE sessions SET user_epoch = (SELECT epoch FROM users WHERE id = $2) WHERE id = $1 AND user_id = $2',
);
/** The most sessions of one person. One more sign-in ends the session that was used longest ago. */
export const MAX_SESSIONS = 100;

export interface NewSession {
  /** The person as read at the authentication: if the credential generation was raised since, the session is invalid. */
  readonly user: Pick<User, 'id' | 'credentialGeneration'>;
  readonly method: SignInMethod;
  /** When the person authenticated; now if absent. */
  readonly authTimeMs?: number | undefined;
  readonly address: string;
  readonly userAgent: string;
  /** Statements that commit with the session. */
  readonly statements?: readonly BoundStatement[];
}

export function hashSessionToken(token: string): string {
  return createHash('sha256').update(`trivet session ${token}`).digest('base64url');
}

/** Creates a session and returns its token, which is not stored. */
export async function createSession(
  store: Store,
  world: World,
  session: NewSession,
): Promise<{ readonly id: string; readonly token: string }> {
  const id = world.uuid();
  const token = Buffer.from(world.randomBytes(32)).toString('base64url');
  const nowMs = world.nowMs();
  const { user, method, authTimeMs = nowMs, address } = session;
  const userAgent = session.userAgent.slice(0, 300);
  await store.writeAll([
    { statement: lockPersonSql, parameters: [user.id] },
    {
      statement: insertSessionSql,
      parameters: [
        id,
        hashSessionToken(token),
        user.id,
        user.credentialGeneration,
        method,
        authTimeMs,
        nowMs,
        address,
        userAgent,
      ],
    },
    { statement: deleteSurplusSessionsSql, parameters: [user.id, MAX_SESSIONS, id, nowMs] },
    auditStatement({ kind: 'sign_in', userId: user.id, address, details: { method } }, nowMs),
    ...(session.statements ?? []),
  ]);
  return { id, token };
}

/** Finds the live session of a cookie's token. Marks it as seen, unless `watched`: an open page that only refreshes itself. */
export async function findSession(
  store: Store,
  token: string,
  nowMs: number,
  use: 'used' | 'watched' = 'used',
): Promise<StoredSession | undefined> {
  const [row] = await store.read(liveSessionSql, [
    hashSessionToken(token),
    nowMs - SESSION_IDLE_MS,
    nowMs - LONGEST_MS,
  ]);
  if (row === undefined) return undefined;
  // A mark that fails must not fail the request: while the database is read-only, pages that only read still work.
  if (use === 'used' && Math.abs(nowMs - row.last_seen_at_ms) >= SEEN_STEP_MS)
    await store.write(seeSessionSql, [row.session_id, nowMs]).catch(() => undefined);
  return {
    id: row.session_id,
    user: toUser(row),
    method: row.method,
    authTimeMs: row.auth_time_ms,
    lastSeenAtMs: row.last_seen_at_ms,
  };
}

/** The live sessions of a person, the most recently seen first. */
export async function listSessions(store: Store, userId: string, nowMs: number): Promise<SessionEntry[]> {
  const rows = await store.read(sessionsOfUserSql, [userId, nowMs - SESSION_IDLE_MS, nowMs - LONGEST_MS]);
  return rows.map((row) => ({
    id: row.id,
    method: row.method,
    authTimeMs: row.auth_time_ms,
    lastSeenAtMs: row.last_seen_at_ms,
    address: row.address,
    userAgent: row.user_agent,
  }));
}

export function endSessionStatement(sessionId: string, userId: string): BoundStatement {
  return { statement: deleteSessionSql, parameters: [sessionId, userId] };
}

/** Keeps one session valid when its person's credential generation is raised; execute it after the statement that raises it. */
export function keepSessionStatement(sessionId: string, userId: string): BoundStatement {
  return { statement: keepSessionSql, parameters: [sessionId, userId] };
}

/** Ends every session of a person but `keptSessionId`; `''` ends all. */
export function endOtherSessionsStatement(userId: string, keptSessionId: string): BoundStatement {
  return { statement: deleteOtherSessionsSql, parameters: [userId, keptSessionId] };
}

export interface SessionEnd {
  readonly sessionId: string;
  readonly userId: string;
  readonly address: string;
  readonly kind: 'sign_out' | 'session_ended';
  readonly nowMs: number;
}

/** Changes and records nothing if this person has no such session. */
export async function endSession(store: Store, end: SessionEnd): Promise<void> {
  const { sessionId, userId, kind, address, nowMs } = end;
  const change = endSessionStatement(sessionId, userId);
  await store.call(changeAndRecord, { change, statements: [auditStatement({ kind, userId, address }, nowMs)] });
}
