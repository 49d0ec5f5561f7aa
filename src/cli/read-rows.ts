import { InvalidArgumentError, Option } from 'commander';
import type { IgnoredField, Refusals } from '../prediction/formats/read-table.ts';
import { formatTable, remark } from './output.ts';

/** What `--format requests` needs. */
export function createKvCapacityOption(): Option {
  return new Option('--kv-capacity-tokens <tokens>', 'with --format requests: tokens that one server holds').argParser(
    (text) => {
      const tokens = Number(text);
      if (!(tokens > 0)) throw new InvalidArgumentError('it must be a number above 0.');
      return tokens;
    },
  );
}

export function formatRefusals(refusals: readonly Refusals[]): string {
  if (refusals.length === 0) return '';
  return formatTable(
    ['rows', 'why', 'first at'],
    refusals.map(({ reason, rows, firstAt }) => [rows, reason, firstAt]),
  );
}

function formatIgnored(fields: readonly IgnoredField[]): string {
  return fields.map(({ name, rows }) => `${name} (${rows} ${rows === 1 ? 'row' : 'rows'})`).join(', ');
}

/** A misspelt field would else be a metric that is 0 everywhere. */
export function warnOfIgnored(fields: readonly IgnoredField[]): void {
  if (fields.length > 0) remark(`Fields that nothing is made of: ${formatIgnored(fields)}`);
}
