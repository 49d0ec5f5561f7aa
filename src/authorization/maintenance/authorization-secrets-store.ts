/** Lists the encrypted columns of authorization, to re-encrypt them when the key changes. */
import { createEncryptedColumn } from '../../database/reencrypt-store.ts';
import { type OneTimeTokenKind, oneTimeTokenAssociatedData } from '../accounts/one-time-token-store.ts';
import { seedAssociatedData } from '../accounts/totp-store.ts';
import { signingKeyAssociatedData } from '../tokens/signing-keys.ts';

export const ENCRYPTED_IN_AUTHORIZATION = [
  createEncryptedColumn({
    name: 'seeds of authenticator apps',
    table: 'totp_secrets',
    column: 'seed',
    keys: ['user_id'],
    start: [''],
    associatedData: (row) => seedAssociatedData(row.key_1 as string),
  }),
  createEncryptedColumn({
    name: 'signing keys',
    table: 'signing_keys',
    column: 'private_key',
    keys: ['kid'],
    start: [''],
    associatedData: (row) => signingKeyAssociatedData(row.key_1 as string),
  }),
  createEncryptedColumn({
    name: 'sign-ins under way',
    table: 'tickets',
    column: 'content',
    keys: ['token_hash', 'kind'],
    start: ['', ''],
    associatedData: (row) => oneTimeTokenAssociatedData(row.key_2 as OneTimeTokenKind, row.key_1 as string),
  }),
];
