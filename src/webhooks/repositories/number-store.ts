/** Numbers repositories and hooks: takes the next of the small ids that clients see. */
import { type Store, statement } from '../../database/store.ts';

const takeNumberSql = statement<{ value: number }>(
  'take-webhook-number',
  `INSERT INTO webhook_numbers (name, value) VALUES ($1, 1)
   ON CONFLICT (name) DO UPDATE SET value = webhook_numbers.value + 1 RETURNING value`,
);

/** Takes the next of the small numbers that clients see as `id`; a number that is not used leaves a gap. */
export async function nextNumber(store: Store, name: 'repository' | 'hook'): Promise<number> {
  const [row] = await store.write(takeNumberSql, [name]);
  return row?.value ?? 0;
}
