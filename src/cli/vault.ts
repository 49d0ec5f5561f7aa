/** `trivet vault`: the keys that seal stored secrets. */
import { Command } from 'commander';
import { SEALED_IN_AUTHORIZATION } from '../authorization/maintenance/authorization-secrets-store.ts';
import { openCliStore } from '../command-line/open-cli-store.ts';
import { createProgress, formatTable, print, remark } from '../command-line/output.ts';
import { resealPlace } from '../database/reseal-store.ts';
import { SEALED_CANARY } from '../database/startup/vault-keys.ts';
import { SEALED_IN_WEBHOOKS } from '../webhooks/management/hook-secrets-store.ts';

export function createVaultCommand(): Command {
  const command = new Command('vault').description('Look after the keys that seal stored secrets');
  command
    .command('reseal')
    .description(
      'Seal everything under the first key, so that the others can be given up; may be run again at any time',
    )
    .action(reseal);
  return command;
}

async function reseal(): Promise<void> {
  await using cli = await openCliStore();
  const showProgress = createProgress(() => cli.world.monotonicMs());
  const rows: [string, number][] = [];
  for (const place of [...SEALED_IN_AUTHORIZATION, ...SEALED_IN_WEBHOOKS, SEALED_CANARY]) {
    const done = await resealPlace(cli, place, (count) => showProgress(`${place.name}: ${count}`));
    rows.push([place.name, done]);
  }
  print(formatTable(['secrets', 'sealed again'], rows));
  remark(
    'Everything is under the first key. Once every service was started with it in front, the others can be removed.',
  );
}
