/** The tests of pages and forms once more, on PostgreSQL. */
import { test } from 'node:test';
import { findReasonToSkip } from '../support/engines.ts';

process.env.TRIVET_TEST_ENGINE = 'postgres';
const reason = findReasonToSkip('postgres');
const FILES = [
  'authorization/sign-in/cookies',
  'authorization/sign-in/second-step',
  'authorization/sign-in/sign-in',
  'authorization/sign-in/upstream',
  'authorization/account-pages/access',
  'authorization/account-pages/pages',
  'console/console-pages',
  'console/forms',
  'console/live',
  'console/models/accuracy-pages',
  'console/models/effect-pages',
  'console/models/error-pages',
  'console/models/model-pages',
  'console/models/what-if',
  'console/overview/overview',
  'console/webhooks/hook-pages',
];

if (reason !== false) test('pages on PostgreSQL', { skip: reason }, () => {});
else for (const file of FILES) await import(`../../src/${file}.test.ts`);
