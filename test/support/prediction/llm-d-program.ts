import { waitUntil } from '../basics/wait-until.ts';
import type { Program } from '../programs/start-program.ts';
import { createRouterRow, createTpotEntry, createTtftEntry, type RouterRow } from './llm-d-router.ts';

export const ENVIRONMENT = { LLM_D_PORT: '0', LLM_D_MODEL: 'm', LOG_LEVEL: 'error', PREDICTION_LEARNING: 'false' };

export function findUrl({ output }: Program): string {
  return /llm-d\s+(\S+)/.exec(output())?.[1] ?? '';
}

/** Lengths that tell rows apart: the prior's TTFT rises with them. */
export const rowsFrom = (first: number, count: number): RouterRow[] =>
  Array.from({ length: count }, (_, i) => createRouterRow({ input_token_length: 1 + ((first + i) % 7919) }));

export const entriesOf = (rows: readonly RouterRow[], kind: 'ttft' | 'tpot') =>
  rows.map((row) =>
    kind === 'ttft'
      ? createTtftEntry(row, 150.7, Date.now())
      : createTpotEntry(row, row, { tpotMs: 12.5, atMs: Date.now() }),
  );

/** Waits until more trainings have ended than before. Returns how many. */
export async function waitForTraining({ httpUrl }: Pick<Program, 'httpUrl'>, before: number): Promise<number> {
  return await waitUntil(async () => {
    const metrics = await (await fetch(`${httpUrl}/metrics`)).text();
    const counts = [...metrics.matchAll(/^trivet_prediction_trainings_total\{.*\} (\d+)$/gm)];
    const trainings = counts.reduce((sum, [, count]) => sum + Number(count), 0);
    return trainings > before && trainings;
  });
}
