/** Runs `trivet vault`: encrypts stored secrets again after their key was rotated. */
import { Command } from 'commander';
import { ENCRYPTED_IN_AUTHORIZATION } from '../authorization/maintenance/authorization-secrets-store.ts';
import { type CliStore, openCliStore } from '../command-line/open-cli-store.ts';
import { createProgress, formatTable, print, printJson, remark } from '../command-line/output.ts';
import { type EncryptedColumn, type Reencrypted, reencryptColumn } from '../database/reencrypt-store.ts';
import { findServiceKeys } from '../database/startup/data-dir-lock.ts';
import { ENCRYPTED_CANARY } from '../database/startup/encryption-keys.ts';
import { Failure } from '../errors.ts';
import { ENCRYPTED_MAILS } from '../mail/mail-store.ts';
import { ENCRYPTED_IN_WEBHOOKS } from '../webhooks/management/hook-secrets-store.ts';

export function createVaultCommand(): Command {
  const command = new Command('vault').description('Rotate the keys that encrypt stored secrets');
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
  checkServiceEncryptsWithKey(cli);
  const showProgress = createProgress(() => cli.world.monotonicMs());
  const results: Resealed[] = [];
  const resealColumn = async (column: EncryptedColumn): Promise<void> => {
    const done = await reencryptColumn(cli, column, (count) => showProgress(`${column.name}: ${count}`));
    results.push({ secrets: column.name, ...done });
  };
  for (const column of [...ENCRYPTED_IN_AUTHORIZATION, ...ENCRYPTED_IN_WEBHOOKS, ENCRYPTED_MAILS])
    await resealColumn(column);
  const unreadable = results.flatMap((result) => result.unreadable);
  // A start without the former keys is refused while the test value needs one of them.
  if (unreadable.length === 0) await resealColumn(ENCRYPTED_CANARY);
  printResealed(results, { json });
  if (unreadable.length > 0) throw refuseUnreadable(unreadable);
  remark(
    'Every secret is encrypted with the first key. If a service was started without that key in front, restart it first, and run this again; then the other keys can be removed.',
  );
}

interface Resealed extends Reencrypted {
  readonly secrets: string;
}

function printResealed(results: readonly Resealed[], { json }: { readonly json: true | undefined }): void {
  if (json) for (const result of results) printJson(result);
  else {
    const rows = results.map(({ secrets, encrypted, unreadable }) => [secrets, encrypted, unreadable.length]);
    print(formatTable(['secrets', 'encrypted again', 'unreadable'], rows));
  }
}

function refuseUnreadable(unreadable: readonly string[]): Failure {
  return new Failure(
    'conflict',
    `Cannot encrypt every secret again: ${unreadable.length} cannot be read\n${unreadable.join('\n')}\n` +
      'Keep the other keys. Bring back the key of each of these secrets, or replace the secret, and run this again',
  );
}

/**
 * A service that does not know the new key could not read secrets that are encrypted with it. One that has it after another key
 * continues to encrypt with that other key, which could then be removed too early.
 */
function checkServiceEncryptsWithKey({ cipher, config: { store } }: CliStore): void {
  if (store.databaseUrl !== undefined) return;
  const known = findServiceKeys(store.dataDir);
  const [current] = cipher.keyIds;
  if (known === undefined || current === undefined || known[0] === current) return;
  throw new Failure(
    'conflict',
    `Cannot encrypt again: the service of "${store.dataDir}" does not encrypt with the first key; restart it with this key in front`,
  );
}
