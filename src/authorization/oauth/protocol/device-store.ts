/** Stores device codes (RFC 8628): decided by the user, redeemed once, polled no faster than `slow_down` allows. */
import { type BoundStatement, type Procedure, procedure, type Store, statement } from '../../../database/store.ts';
import { MAX_SKEW_MS } from '../../../steady-clock.ts';
import { auditStatement } from '../../accounts/audit-store.ts';
import { existsStillValid } from '../../accounts/credential-validity-store.ts';
import { formatScope } from '../../applications/scope.ts';
import { deleteSurplusFamilies } from '../../tokens/surplus-tokens-store.ts';
import { insertFamilyStatements, type NewTokens } from '../../tokens/token-store.ts';
import { type ConsentDecision, saveConsentIn } from './consent-store.ts';

export interface NewDeviceCode {
  readonly deviceHash: Uint8Array;
  readonly userCode: string;
  readonly clientId: string;
  readonly scope: string;
  readonly intervalSeconds: number;
  readonly issuedAtMs: number;
  readonly expiresAtMs: number;
}

export interface PendingDevice {
  readonly userCode: string;
  readonly clientId: string;
  readonly scope: string;
}

const insertDeviceSql = statement<{ user_code: string }>(
  'insert-device-code',
  `INSERT INTO device_codes (device_hash, user_code, client_id, scope, state, interval_s, issued_at_ms, expires_at_ms)
   VALUES ($1, $2, $3, $4, 'pending', $5, $6, $7) ON CONFLICT (user_code) DO NOTHING RETURNING user_code`,
);
const pendingDeviceSql = statement<{ user_code: string; client_id: string; scope: string }>(
  'pending-device',
  `SELECT user_code, client_id, scope FROM device_codes WHERE user_code = $1 AND state = 'pending' AND expires_at_ms > $2`,
);
// `user_epoch` and `grant_id` are explained in accounts/credential-validity-store.ts.
const approveDeviceSql = statement(
  'approve-device',
  `UPDATE device_codes SET state = 'approved', user_id = $3, auth_time_ms = $4, user_epoch = $5, grant_id = $6, scope = $7
   WHERE user_code = $1 AND state = 'pending' AND expires_at_ms > $2`,
);
const denyDeviceSql = statement<{ client_id: string }>(
  'deny-device',
  `UPDATE device_codes SET state = 'denied', user_id = $3
   WHERE user_code = $1 AND state = 'pending' AND expires_at_ms > $2 RETURNING client_id`,
);
const deviceScopeSql = statement<{ scope: string }>(
  'device-scope',
  'SELECT scope FROM device_codes WHERE device_hash = $1',
);
const deviceDecisionSql = statement<{ state: DeviceRow['state'] }>(
  'device-decision',
  'SELECT state FROM device_codes WHERE user_code = $1 AND user_id = $2 AND expires_at_ms > $3',
);

/** Returns false, and stores nothing, if the user code is taken. */
export async function insertDeviceCode(store: Store, code: NewDeviceCode): Promise<boolean> {
  const { deviceHash, userCode, clientId, scope, intervalSeconds, issuedAtMs, expiresAtMs } = code;
  const rows = await store.write(insertDeviceSql, [
    deviceHash,
    userCode,
    clientId,
    scope,
    intervalSeconds,
    issuedAtMs,
    expiresAtMs,
  ]);
  return rows.length > 0;
}

export async function findPendingDevice(
  store: Store,
  userCode: string,
  nowMs: number,
): Promise<PendingDevice | undefined> {
  const [row] = await store.read(pendingDeviceSql, [userCode, nowMs]);
  return row && { userCode: row.user_code, clientId: row.client_id, scope: row.scope };
}

/** The scope of a device: as requested, and after the decision as allowed, with `openid` kept. Empty for an unknown device. */
export async function findDeviceScope(store: Store, deviceHash: Uint8Array): Promise<string> {
  const [row] = await store.read(deviceScopeSql, [deviceHash]);
  return row?.scope ?? '';
}

/** Finds this person's decision about a device; undefined if they have not decided, or the code has expired. */
export async function findDeviceDecision(
  store: Store,
  { userCode, userId, nowMs }: { readonly userCode: string; readonly userId: string; readonly nowMs: number },
): Promise<'approved' | 'denied' | undefined> {
  const [row] = await store.read(deviceDecisionSql, [userCode, userId, nowMs]);
  if (row === undefined || row.state === 'pending') return undefined;
  return row.state === 'denied' ? 'denied' : 'approved';
}

export interface DeviceApproval {
  readonly userCode: string;
  readonly decision: ConsentDecision;
  readonly credentialGeneration: number;
  readonly authTimeMs: number;
  readonly audit: BoundStatement;
}

/** Returns false if the device was decided already, or its code has expired. */
export const approveDeviceOnce: Procedure<DeviceApproval, boolean> = procedure(
  import.meta.url,
  'approveDeviceOnce',
  async (transaction, { userCode, decision, credentialGeneration, authTimeMs, audit }) => {
    const { userId, allowedScopes, nowMs } = decision;
    const pending = await transaction.run(pendingDeviceSql, [userCode, nowMs]);
    if (pending.length === 0) return false;
    const consentId = await saveConsentIn(transaction, decision);
    const origin = [userId, authTimeMs, credentialGeneration, consentId, formatScope(allowedScopes)];
    await transaction.run(approveDeviceSql, [userCode, nowMs, ...origin]);
    await transaction.runAll([audit]);
    return true;
  },
);

export interface DeviceDenial {
  readonly userCode: string;
  readonly userId: string;
  readonly nowMs: number;
  readonly audit: BoundStatement;
}

/** Returns false if the device was decided already, or its code has expired. */
export const denyDeviceOnce: Procedure<DeviceDenial, boolean> = procedure(
  import.meta.url,
  'denyDeviceOnce',
  async (transaction, { userCode, userId, nowMs, audit }) => {
    const denied = await transaction.run(denyDeviceSql, [userCode, nowMs, userId]);
    if (denied.length > 0) await transaction.runAll([audit]);
    return denied.length > 0;
  },
);

export interface DevicePoll {
  readonly deviceHash: Uint8Array;
  readonly clientId: string;
  readonly nowMs: number;
  readonly familyId: string;
  readonly familyExpiresAtMs: number;
  readonly tokens: NewTokens;
  /** Whether this call also deletes families over the limit (surplus-tokens-store.ts). */
  readonly deletesSurplus: boolean;
  readonly address: string;
}

export type DevicePollOutcome =
  | { readonly kind: 'redeemed'; readonly userId: string; readonly scope: string; readonly authTimeMs: number }
  | { readonly kind: 'authorization_pending' | 'slow_down' | 'expired_token' | 'access_denied' | 'invalid_grant' };

interface DeviceRow {
  readonly client_id: string;
  readonly scope: string;
  readonly state: 'pending' | 'approved' | 'denied' | 'redeemed';
  readonly user_id: string | null;
  readonly auth_time_ms: number | null;
  readonly interval_s: number;
  readonly polled_at_ms: number | null;
  readonly issued_at_ms: number;
  readonly expires_at_ms: number;
}

const deviceByHashSql = statement<DeviceRow>(
  'device-by-hash',
  `SELECT client_id, scope, state, user_id, auth_time_ms, interval_s, polled_at_ms, issued_at_ms, expires_at_ms
   FROM device_codes WHERE device_hash = $1`,
);
const recordPollSql = statement(
  'record-device-poll',
  'UPDATE device_codes SET polled_at_ms = $2, interval_s = $3 WHERE device_hash = $1',
);
const redeemDeviceSql = statement<{ user_id: string; user_epoch: number; grant_id: string }>(
  'redeem-device',
  `UPDATE device_codes SET state = 'redeemed', family_id = $2 WHERE device_hash = $1 AND state = 'approved'
     AND ${existsStillValid('device_codes')}
   RETURNING user_id, user_epoch, grant_id`,
);
/** How much `slow_down` adds to the polling interval (RFC 8628 §3.5). */
export const SLOW_DOWN_SECONDS = 5;

export const pollDevice: Procedure<DevicePoll, DevicePollOutcome> = procedure(
  import.meta.url,
  'pollDevice',
  async (transaction, poll) => {
    const { deviceHash, nowMs } = poll;
    const [row] = await transaction.run(deviceByHashSql, [deviceHash]);
    if (row === undefined || row.client_id !== poll.clientId || row.state === 'redeemed')
      return { kind: 'invalid_grant' };
    // A code dated in the future (the clock was set back since) would be valid for too long.
    if (row.expires_at_ms <= nowMs || row.issued_at_ms > nowMs + MAX_SKEW_MS) return { kind: 'expired_token' };
    if (row.state === 'denied') return { kind: 'access_denied' };
    if (row.state === 'pending') {
      const sincePollMs = nowMs - (row.polled_at_ms ?? -Infinity);
      const isTooFast = sincePollMs >= 0 && sincePollMs < row.interval_s * 1000;
      const interval = row.interval_s + (isTooFast ? SLOW_DOWN_SECONDS : 0);
      await transaction.run(recordPollSql, [deviceHash, nowMs, interval]);
      return { kind: isTooFast ? 'slow_down' : 'authorization_pending' };
    }
    const [redeemed] = await transaction.run(redeemDeviceSql, [deviceHash, poll.familyId]);
    if (redeemed === undefined) return { kind: 'invalid_grant' };
    const authTimeMs = row.auth_time_ms ?? nowMs;
    const { clientId, familyId, familyExpiresAtMs: expiresAtMs, address } = poll;
    const { user_id: userId, user_epoch: credentialGeneration, grant_id: consentId } = redeemed;
    const person = { userId, credentialGeneration, consentId };
    const family = { familyId, clientId, person, scope: row.scope, authTimeMs, nowMs, expiresAtMs };
    const details = { scope: row.scope, device: true };
    await transaction.runAll([
      ...insertFamilyStatements(family, poll.tokens),
      auditStatement({ kind: 'token_issued', userId, clientId, address, details }, nowMs),
    ]);
    if (poll.deletesSurplus) await deleteSurplusFamilies(transaction, { ...family, userId });
    return { kind: 'redeemed', userId, scope: row.scope, authTimeMs };
  },
);
