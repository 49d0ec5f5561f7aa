/** Lists the encrypted columns of webhooks, for a change of the encryption key. */
import { createEncryptedColumn } from '../../database/reencrypt-store.ts';
import { hookAssociatedData } from '../hooks/hook.ts';
import { bridgeAssociatedData } from '../intake/bridge-store.ts';

export const ENCRYPTED_IN_WEBHOOKS = [
  createEncryptedColumn({
    name: 'keys of webhooks',
    table: 'hooks',
    column: 'secret',
    keys: ['id'],
    start: [0],
    associatedData: (row) => hookAssociatedData(row.key_1 as number),
  }),
  createEncryptedColumn({
    name: 'former keys of webhooks',
    table: 'hooks',
    column: 'previous_secret',
    keys: ['id'],
    start: [0],
    associatedData: (row) => hookAssociatedData(row.key_1 as number),
  }),
  createEncryptedColumn({
    name: 'secrets of bridges',
    table: 'bridge_secrets',
    column: 'secret',
    keys: ['repository_id', 'host'],
    start: [0, ''],
    associatedData: (row) => bridgeAssociatedData(row.key_1 as number, row.key_2 as string),
  }),
];
