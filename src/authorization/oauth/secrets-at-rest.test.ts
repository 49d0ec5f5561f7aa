import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { obtainCode, refresh } from '../../../test/support/authorization/authorization-server.ts';
import { type Case, checkConformance, prepareTokens } from '../../../test/support/authorization/conformance.ts';
import { type Store, statement } from '../../database/store.ts';
import { createPersonalToken } from '../tokens/personal-token.ts';

const cases: Case[] = [
  [
    'S08 the files of the database hold no usable token, code or secret',
    async (bench) => {
      const { server, context } = bench;
      const { tokens, clientSecret, person, clientId } = await prepareTokens(bench);
      const next = (await refresh(server, tokens.refresh_token)).json;
      const code = await obtainCode(server, person, { client_id: clientId });
      const { secret } = await createPersonalToken(server.store, server.world, {
        userId: person.user.id,
        name: 'x',
        scopes: ['all_user'],
        expiresAtMs: undefined,
      });
      const secrets = [tokens.access_token, tokens.refresh_token, clientSecret, code, secret];
      secrets.push(String(next.access_token), String(next.refresh_token), person.cookie.split('=')[1] ?? '');
      const dump = context.engine === 'sqlite' ? readFiles(context.place.dataDir) : await dumpTables(server.store);
      assert.ok(dump.includes(clientId), 'the dump is one');
      for (const text of secrets) assert.ok(!dump.includes(text));
    },
  ],
];

function readFiles(folder: string): string {
  return readdirSync(folder)
    .filter((name) => name.startsWith('trivet.db'))
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('');
}

const TABLES = ['applications', 'application_secrets', 'authorization_codes', 'token_families', 'refresh_tokens'];

async function dumpTables(store: Store): Promise<string> {
  const tables = [...TABLES, 'access_tokens', 'personal_tokens', 'sessions', 'audit_events', 'consents'];
  const rows = await Promise.all(
    tables.map((table) => store.read(statement(`test-dump-${table}`, `SELECT * FROM ${table}`))),
  );
  return rows.flat().flatMap(Object.values).map(describeValue).join('\n');
}

function describeValue(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value);
}

checkConformance('at rest', cases);
