import { type Store, statement } from './store.ts';

const ready = statement('database_ready', 'SELECT 1 AS ready');

/** Rejects when the database does not answer. */
export async function checkStoreReady(store: Store): Promise<void> {
  await store.read(ready);
}
