/** Where authorization keeps sealed secrets, for a change of the key. */
import { createSealedPlace } from '../../database/reseal-store.ts';
import { bindTicket, type TicketKind } from '../accounts/ticket-store.ts';
import { bindSeed } from '../accounts/totp-store.ts';
import { bindSigningKey } from '../tokens/signing-keys.ts';

export const SEALED_IN_AUTHORIZATION = [
  createSealedPlace({
    name: 'seeds of authenticator apps',
    table: 'totp_secrets',
    column: 'seed',
    keys: ['user_id'],
    start: [''],
    bind: (row) => bindSeed(row.key_1 as string),
  }),
  createSealedPlace({
    name: 'signing keys',
    table: 'signing_keys',
    column: 'private_key',
    keys: ['kid'],
    start: [''],
    bind: (row) => bindSigningKey(row.key_1 as string),
  }),
  createSealedPlace({
    name: 'sign-ins under way',
    table: 'tickets',
    column: 'content',
    keys: ['token_hash', 'kind'],
    start: ['', ''],
    bind: (row) => bindTicket(row.key_2 as TicketKind, row.key_1 as string),
  }),
];
