/** Bodies made to cost more than they are long: each is refused or read in linear time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isFailure } from '../../errors.ts';
import { readPredictionRows, readTrainingRows } from './read-rows.ts';
import { MAX_BODY_BYTES } from './row-body.ts';

/** Ten times what the slowest takes; a pass for each byte would take minutes. */
const MAX_CPU_SECONDS = 5;

const fill = (pattern: string) => pattern.repeat(Math.floor((MAX_BODY_BYTES - 100) / pattern.length));
const LONG = fill('9');

const bodies: [title: string, body: string][] = [
  ['of empty rows', `{"requests":[${fill('{},')}{}]}`],
  ['of escaped quotes', `{"requests":[{"pod_type":"${fill('\\"')}"}]}`],
  ['of backslashes', `{"requests":[{"pod_type":"${fill('\\\\')}"}]}`],
  ['of nested lists', fill('[')],
  ['of a list in a row', `{"requests":[{"more":${'['.repeat(60)}${fill('0,')}0${']'.repeat(60)}}]}`],
  ['of a long number', `{"requests":[{"input_token_length":${LONG}}]}`],
  [
    'of a number as a long text',
    `{"requests":[{"input_token_length":"${LONG}","prefix_cache_score":"${' '.repeat(100)}"}]}`,
  ],
  ['of a long time', `{"entries":[{"timestamp":"2026-01-01T00:00:00.${LONG}"}]}`],
  ['of a long pod type', `{"requests":[{"pod_type":"${LONG}"}]}`],
  ['of one name again and again', `{"requests":[{${fill('"pod_type":1,')}"pod_type":1}]}`],
  ['of many names', `{"requests":[{${Array.from({ length: 200_000 }, (_, i) => `"a${i}":1`).join(',')}}]}`],
];
for (const [title, body] of bodies)
  test(`a body ${title} is refused in linear time`, async () => {
    const bytes = Buffer.from(body);
    const before = process.cpuUsage();
    for (const read of [readPredictionRows, readTrainingRows])
      await assert.rejects(
        () => read(bytes),
        (error) => isFailure(error) && error.code === 'invalid',
      );
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < MAX_CPU_SECONDS * 1e6, `${(user + system) / 1e6} s of a processor`);
  });
