import type { Migration } from '../store.ts';
import { database } from './0001-database.ts';

/** Every migration there is. They run in the order of their numbers. */
export const migrations: readonly Migration[] = [database];
