/** The tests of the pages of accounts, and of their forms, once more on PostgreSQL. */
import { runOnPostgres } from '../support/store/on-postgres.ts';

await runOnPostgres([
  'authorization/sign-in/cookies',
  'authorization/sign-in/overtaken-sign-in',
  'authorization/sign-in/second-step',
  'authorization/sign-in/sign-in',
  'authorization/sign-in/upstream',
  'authorization/account-pages/access',
  'authorization/account-pages/kept-refusals',
  'authorization/account-pages/pages',
]);
