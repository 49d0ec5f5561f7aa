/** `trivet audit`: the audit log, newest first. */
import { Command } from 'commander';
import { openCliStore } from '../../command-line/open-cli-store.ts';
import { formatTable, print, printJson } from '../../command-line/output.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import { Failure } from '../../errors.ts';
import { listEvents, type RecordedEvent } from '../accounts/audit-store.ts';
import { findLogins, findUserByLogin } from '../accounts/user-store.ts';

interface AuditOptions {
  readonly user?: string;
  readonly limit: number;
  readonly json?: true;
}

export function createAuditCommand(): Command {
  return new Command('audit')
    .description('Show the audit log, newest first')
    .option('--user <login>', 'only what touches this account')
    .option('--limit <count>', 'how many events', wholeNumber(1, 10_000), 50)
    .option('--json', 'one JSON object a line')
    .action(audit);
}

async function audit({ user: login, limit, json }: AuditOptions): Promise<void> {
  await using cli = await openCliStore();
  const user = login === undefined ? undefined : await findUserByLogin(cli.store, login);
  if (login !== undefined && user === undefined)
    throw new Failure('not_found', `There is no person with the login "${login}"`);
  const events = await listEvents(cli.store, { userId: user?.id, limit });
  if (json) {
    for (const event of events) printJson({ ...event, at: new Date(event.atMs).toISOString() });
    return;
  }
  const logins = await findLogins(
    cli.store,
    events.flatMap((event) => [event.userId, event.actorId]),
  );
  const rows = events.map((event) => toCells(event, logins));
  print(formatTable(['when', 'what', 'user', 'by', 'client', 'from', 'details'], rows));
}

function toCells(event: RecordedEvent, logins: ReadonlyMap<string, string>) {
  const toLogin = (id: string | undefined) => id && (logins.get(id) ?? id);
  const details = Object.entries(event.details ?? {}).map(([name, value]) => `${name}=${value}`);
  const { kind, userId, actorId, clientId, address } = event;
  return [
    new Date(event.atMs).toISOString(),
    kind,
    toLogin(userId),
    toLogin(actorId),
    clientId,
    address,
    details.join(' '),
  ];
}
