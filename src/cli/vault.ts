/** `trivet vault`: the keys that encrypt stored secrets. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { ENCRYPTED_IN_AUTHORIZATION } from '../authorization/maintenance/authorization-secrets-store.ts';
import { openCliStore } from '../command-line/open-cli-store.ts';
import { createProgress, formatTable, print, printJson, remark } from '../command-line/output.ts';
import type { Config } from '../config/config.ts';
import { reencryptColumn } from '../database/reencrypt-store.ts';
import { ENCRYPTED_CANARY } from '../database/startup/encryption-keys.ts';
import { Failure } from '../errors.ts';
import { ENCRYPTED_MAILS } from '../mail/mail-store.ts';
import { ENCRYPTED_IN_WEBHOOKS } from '../webhooks/management/hook-secrets-store.ts';

export function createVaultCommand(): Command {
  const command = new Command('vault').description('Check and rotate the keys that encrypt stored secrets');
  command
    .command('reseal')
    .description(
      'Encrypt every stored secret with the first key, so that the other keys can be removed. May run again at any time',
    )
    .option('--json', 'one JSON object a line')
    .action(reseal);
  return command;
}

async function reseal({ json }: { readonly json?: true }): Promise<void> {
  await using cli = await openCliStore();
  checkServiceKnowsKeys(cli.config.store);
  const showProgress = createProgress(() => cli.world.monotonicMs());
  const rows: [string, number][] = [];
  for (const column of [...ENCRYPTED_IN_AUTHORIZATION, ...ENCRYPTED_IN_WEBHOOKS, ENCRYPTED_MAILS, ENCRYPTED_CANARY]) {
    const done = await reencryptColumn(cli, column, (count) => showProgress(`${column.name}: ${count}`));
    rows.push([column.name, done]);
  }
  if (json) for (const [secrets, encrypted] of rows) printJson({ secrets, encrypted });
  else print(formatTable(['secrets', 'encrypted again'], rows));
  remark(
    'Every secret is encrypted with the first key. Once every service has been started with that key first, the other keys can be removed.',
  );
}

/** A service that has run since before the keys were changed could not read what is encrypted with the new one. */
function checkServiceKnowsKeys({ databaseUrl, secretKeys, dataDir }: Config['store']): void {
  if (databaseUrl !== undefined || secretKeys !== undefined) return;
  const began = readChangeMs(join(dataDir, 'serve.pid'));
  const keysChanged = readChangeMs(join(dataDir, 'keys'));
  if (began === undefined || keysChanged === undefined || keysChanged <= began) return;
  throw new Failure(
    'conflict',
    `Cannot encrypt again: the service of "${dataDir}" began before the file "keys" was changed; restart it, so that it knows the new key`,
  );
}

function readChangeMs(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
