/** The tests of the console once more, on PostgreSQL. */
import { runOnPostgres } from '../support/store/on-postgres.ts';

await runOnPostgres([
  'console/console-pages',
  'console/forms',
  'console/live',
  'console/models/accuracy-pages',
  'console/models/effect-pages',
  'console/models/error-pages',
  'console/models/model-pages',
  'console/models/what-if',
  'console/overview/overview',
  'console/webhooks/delivery-search',
  'console/webhooks/hook-pages',
]);
