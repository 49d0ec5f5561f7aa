/** Where webhooks keep sealed secrets, for a change of the key. */
import { createSealedPlace } from '../../database/reseal-store.ts';
import { bindingOf } from '../hooks/hook.ts';
import { bridgeBinding } from '../intake/bridge-store.ts';

export const SEALED_IN_WEBHOOKS = [
  createSealedPlace({
    name: 'keys of webhooks',
    table: 'hooks',
    column: 'secret',
    keys: ['id'],
    start: [0],
    bind: (row) => bindingOf(row.key_1 as number),
  }),
  createSealedPlace({
    name: 'former keys of webhooks',
    table: 'hooks',
    column: 'previous_secret',
    keys: ['id'],
    start: [0],
    bind: (row) => bindingOf(row.key_1 as number),
  }),
  createSealedPlace({
    name: 'secrets of bridges',
    table: 'bridge_secrets',
    column: 'secret',
    keys: ['repository_id', 'host'],
    start: [0, ''],
    bind: (row) => bridgeBinding(row.key_1 as number, row.key_2 as string),
  }),
];
