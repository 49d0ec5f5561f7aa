/** Where authorization keeps sealed secrets, for a change of the key. */
import type { SealedPlace, SealedRow } from '../database/reseal-store.ts';
import { statement } from '../database/store.ts';
import { bindSigningKey } from './openid/signing-keys.ts';
import { bindTicket, type TicketKind } from './ticket-store.ts';
import { bindSeed } from './totp-store.ts';

export const SEALED_IN_AUTHORIZATION: readonly SealedPlace[] = [
  {
    name: 'seeds of authenticator apps',
    list: statement<SealedRow>(
      'list-sealed-seeds',
      `SELECT user_id AS key_1, seed AS box FROM totp_secrets
       WHERE user_id > $3 AND substr(seed, 1, 5) <> $1 ORDER BY user_id LIMIT $2`,
    ),
    replace: statement(
      'reseal-seed',
      'UPDATE totp_secrets SET seed = $1 WHERE user_id = $3 AND seed = $2 RETURNING user_id',
    ),
    start: [''],
    bind: (row) => bindSeed(row.key_1 as string),
  },
  {
    name: 'signing keys',
    list: statement<SealedRow>(
      'list-sealed-signing-keys',
      `SELECT kid AS key_1, private_key AS box FROM signing_keys
       WHERE kid > $3 AND substr(private_key, 1, 5) <> $1 ORDER BY kid LIMIT $2`,
    ),
    replace: statement(
      'reseal-signing-key',
      'UPDATE signing_keys SET private_key = $1 WHERE kid = $3 AND private_key = $2 RETURNING kid',
    ),
    start: [''],
    bind: (row) => bindSigningKey(row.key_1 as string),
  },
  {
    name: 'sign-ins under way',
    list: statement<SealedRow>(
      'list-sealed-tickets',
      `SELECT token_hash AS key_1, kind AS key_2, content AS box FROM tickets
       WHERE (token_hash, kind) > ($3, $4) AND substr(content, 1, 5) <> $1 ORDER BY token_hash, kind LIMIT $2`,
    ),
    replace: statement(
      'reseal-ticket',
      'UPDATE tickets SET content = $1 WHERE token_hash = $3 AND kind = $4 AND content = $2 RETURNING kind',
    ),
    start: ['', ''],
    bind: (row) => bindTicket(row.key_2 as TicketKind, row.key_1 as string),
  },
];
