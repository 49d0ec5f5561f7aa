import assert from 'node:assert/strict';
import { test } from 'node:test';
import { capByOpenFiles } from './open-files.ts';

test('capByOpenFiles() leaves files to others', () => {
  assert.equal(capByOpenFiles(1000, 0.5, 200), 100);
  assert.equal(capByOpenFiles(1000, 0.5, 20_000), 1000);
  assert.equal(capByOpenFiles(1000, 0.25, 2), 1);
});
