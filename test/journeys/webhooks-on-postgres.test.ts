/** The tests of webhooks, of forbidden addresses and of a clock that jumps once more, on PostgreSQL. */
import { test } from 'node:test';
import { findReasonToSkip } from '../support/store/engines.ts';

process.env.TRIVET_TEST_ENGINE = 'postgres';
const reason = findReasonToSkip('postgres');
const FILES = ['./webhooks.test.ts', './webhook-own-network.test.ts', './webhook-neighbours.test.ts'];

if (reason !== false) test('webhooks on PostgreSQL', { skip: reason }, () => {});
else for (const file of FILES) await import(file);
