import type { Refusals } from '../prediction/formats/read-table.ts';
import { formatTable } from './output.ts';

export function formatRefusals(refusals: readonly Refusals[]): string {
  if (refusals.length === 0) return '';
  return formatTable(
    ['rows', 'why', 'first at'],
    refusals.map(({ reason, rows, firstAt }) => [rows, reason, firstAt]),
  );
}
