/** Runs `trivet backup`: copies the store into a file. */
import { join } from 'node:path';
import { Command } from 'commander';
import { print, printJson, remark } from '../command-line/output.ts';
import { readConfig } from '../config/config.ts';
import { backupSqlite } from '../database/maintenance/backup.ts';
import { checkNotCopied } from '../database/startup/copied-store.ts';
import { databaseFileOf } from '../database/startup/open-store.ts';
import { Failure } from '../errors.ts';

export function createBackupCommand(): Command {
  return new Command('backup')
    .description('Copy the embedded database into one file, while the service runs')
    .argument('<file>', 'where the copy goes; must not exist')
    .option('--json', 'print JSON')
    .action(backup);
}

function backup(file: string, { json }: { readonly json?: true }): void {
  const { dataDir, databaseUrl, secretKeys } = readConfig().store;
  if (databaseUrl !== undefined)
    throw new Failure(
      'invalid',
      'Cannot back up PostgreSQL: use pg_dump or your provider\'s backups, or "trivet migrate --from postgres --to sqlite:<folder>" for a copy of every table',
    );
  checkNotCopied(dataDir);
  const { bytes } = backupSqlite(databaseFileOf(dataDir), file);
  if (json) printJson({ file, bytes });
  else print(`${file}  ${bytes} bytes`);
  if (secretKeys === undefined)
    remark(`Keep a copy of ${join(dataDir, 'keys')} too, in another place: it opens the secrets in the backup.`);
}
