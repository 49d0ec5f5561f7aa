/** Runs `trivet audit`: prints the audit log, newest first. */
import { Command, Option } from 'commander';
import { printJson, printTable } from '../../command-line/output.ts';
import { PAST_TIME_EXAMPLES, type PastTime, parsePastTime } from '../../command-line/time-option.ts';
import { wholeNumber } from '../../command-line/whole-number.ts';
import type { InputOf, OutputOf } from '../../operations/operation.ts';
import { AUDIT_KINDS } from '../accounts/audit-store.ts';
import { type AuditRow, searchAudit } from '../administration/audit-operations.ts';
import { type AnswerOptions, addAnswerOptions, openAdministration } from './open-administration.ts';

type Search = Pick<InputOf<typeof searchAudit>, 'user' | 'by' | 'kind' | 'repository' | 'hook'>;

interface AuditOptions extends AnswerOptions, Search {
  readonly since?: PastTime;
  readonly until?: PastTime;
  readonly limit: number;
}

export function createAuditCommand(): Command {
  const command = new Command('audit')
    .description('Show the audit log, newest first')
    .option('--user <login>', 'only events that concern this account')
    .option('--by <login>', 'only events that this person caused')
    .addOption(new Option('--kind <kind>', 'only events of this kind').choices(AUDIT_KINDS))
    .option('--repo, --repository <owner/name>', 'only changes of this repository and its webhooks')
    .option('--hook <id>', 'only changes of this webhook', wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .option('--since <time>', `only events from this time on: ${PAST_TIME_EXAMPLES}`, parsePastTime)
    .option('--until <time>', 'only events before this time, in the same notation', parsePastTime)
    .option('--limit <count>', 'how many events', wholeNumber(1, 10_000), 50);
  return addAnswerOptions(command, 'one JSON object a line').action(audit);
}

const PAGE_SIZE = 200;

async function audit({ limit, ...options }: AuditOptions): Promise<void> {
  const { user, by, kind, repository, hook } = options;
  await using operator = await openAdministration(options);
  const since = await options.since?.(operator);
  const until = await options.until?.(operator);
  const wanted = { user, by, kind, repository, hook, since, until };
  const events: AuditRow[] = [];
  for (let before: string | null | undefined; before !== null && events.length < limit; ) {
    const search = { ...wanted, before, limit: Math.min(PAGE_SIZE, limit - events.length) };
    const page: OutputOf<typeof searchAudit> = await operator.call(searchAudit, search);
    events.push(...page.events);
    before = page.next;
  }
  if (options.json) {
    for (const event of events) printJson(event);
    return;
  }
  printTable(['when', 'what', 'user', 'by', 'client', 'from', 'details'], events.map(toCells), 'No event');
}

function toCells({ at, kind, user, userId, actor, actorId, clientId, address, details }: AuditRow) {
  // A change by a command on the store has no account as its actor: its details name the command.
  const { by, ...rest } = details;
  const facts = Object.entries(rest).map(([name, value]) => `${name}=${value}`);
  return [at, kind, user ?? userId, actor ?? actorId ?? by, clientId, address, facts.join(' ')];
}
