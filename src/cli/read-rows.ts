import { InvalidArgumentError, Option } from 'commander';
import type { Refusals } from '../prediction/formats/read-table.ts';
import { formatTable } from './output.ts';

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
