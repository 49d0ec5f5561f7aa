/** Checks for the readiness probe (`/readyz`) that the database answers in time. */
import { Failure } from '../../errors.ts';
import { type Store, statement } from '../store.ts';

const readySql = statement('database-ready', 'SELECT 1 AS ready');

/** A probe gives up after a second or two. */
const DEADLINE_MS = 2000;

/** Rejects when the database does not answer. */
export async function checkStoreReady(store: Store): Promise<void> {
  const late = Promise.withResolvers<never>();
  const refusal = new Failure('unavailable', 'Cannot use the database right now: it does not answer');
  const timer = setTimeout(() => late.reject(refusal), DEADLINE_MS);
  try {
    await Promise.race([store.read(readySql), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
