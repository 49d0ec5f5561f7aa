import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createIssueLog, ISSUES_AN_HOUR, type IssueRecord } from './issue-log.ts';

function createLog() {
  let nowMs = 0;
  const log = createIssueLog({ monotonicMs: () => nowMs });
  return {
    prepare: () => log.prepare({ userId: undefined, clientId: 'app_1', address: undefined, scope: 'predict', nowMs }),
    nextHour: () => {
      nowMs += 3_600_000;
    },
  };
}

function readNotRecorded({ statements }: IssueRecord): string | undefined {
  return /"not_recorded":(-?\d+)/.exec(String(statements[0]?.parameters.at(-1)))?.[1];
}

test('the number of omitted events is in one event, also when two are prepared at once', () => {
  const log = createLog();
  for (let count = 0; count < ISSUES_AN_HOUR + 7; count += 1) log.prepare().count();
  log.nextHour();
  const refused = log.prepare();
  assert.deepEqual([refused, log.prepare()].map(readNotRecorded), ['7', undefined]);
  refused[Symbol.dispose]();
  const together = [log.prepare(), log.prepare()];
  for (const record of together) {
    record.count();
    record[Symbol.dispose]();
  }
  assert.deepEqual([...together, log.prepare()].map(readNotRecorded), ['7', undefined, undefined]);
});
