/** Where webhooks keep sealed secrets, for a change of the key. */
import type { SealedPlace, SealedRow } from '../database/reseal-store.ts';
import { statement } from '../database/store.ts';
import { bridgeBinding } from './bridge-routes.ts';
import { bindingOf } from './hook.ts';

export const SEALED_IN_WEBHOOKS: readonly SealedPlace[] = [
  {
    name: 'keys of webhooks',
    list: statement<SealedRow>(
      'list-sealed-hooks',
      `SELECT id AS key_1, secret AS box FROM hooks
       WHERE id > $3 AND secret IS NOT NULL AND substr(secret, 1, 5) <> $1 ORDER BY id LIMIT $2`,
    ),
    replace: statement('reseal-hook', 'UPDATE hooks SET secret = $1 WHERE id = $3 AND secret = $2 RETURNING id'),
    start: [0],
    bind: (row) => bindingOf(row.key_1 as number),
  },
  {
    name: 'former keys of webhooks',
    list: statement<SealedRow>(
      'list-sealed-former-keys',
      `SELECT id AS key_1, previous_secret AS box FROM hooks
       WHERE id > $3 AND previous_secret IS NOT NULL AND substr(previous_secret, 1, 5) <> $1 ORDER BY id LIMIT $2`,
    ),
    replace: statement(
      'reseal-former-key',
      'UPDATE hooks SET previous_secret = $1 WHERE id = $3 AND previous_secret = $2 RETURNING id',
    ),
    start: [0],
    bind: (row) => bindingOf(row.key_1 as number),
  },
  {
    name: 'secrets of bridges',
    list: statement<SealedRow>(
      'list-sealed-bridges',
      `SELECT repository_id AS key_1, host AS key_2, secret AS box FROM bridge_secrets
       WHERE (repository_id, host) > ($3, $4) AND substr(secret, 1, 5) <> $1 ORDER BY repository_id, host LIMIT $2`,
    ),
    replace: statement(
      'reseal-bridge',
      'UPDATE bridge_secrets SET secret = $1 WHERE repository_id = $3 AND host = $4 AND secret = $2 RETURNING host',
    ),
    start: [0, ''],
    bind: (row) => bridgeBinding(row.key_1 as number, row.key_2 as string),
  },
];
