import type { Migration } from '../store.ts';
import { database } from './0001-database.ts';
import { prediction } from './0010-prediction.ts';
import { authorization } from './0020-authorization.ts';
import { accounts } from './0030-accounts.ts';
import { hooks } from './0040-hooks.ts';
import { deliveries } from './0050-deliveries.ts';

/** Every migration there is. They run in the order of their numbers. */
export const migrations: readonly Migration[] = [database, prediction, authorization, accounts, hooks, deliveries];
