import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findMisspeltVariables } from './misspelt-variables.ts';

test('findMisspeltVariables() names the setting that was meant', () => {
  assert.deepEqual(findMisspeltVariables({ HTTP_PROT: '1', WEBHOOKS_ALLOW_CIDRS: '', TRIVET_DATADIR: 'x' }), [
    { variable: 'HTTP_PROT', meant: 'HTTP_PORT' },
    { variable: 'WEBHOOKS_ALLOW_CIDRS', meant: 'WEBHOOK_ALLOW_CIDRS' },
    { variable: 'TRIVET_DATADIR', meant: 'TRIVET_DATA_DIR' },
  ]);
});

test('findMisspeltVariables() leaves settings and the variables of other programs alone', () => {
  const environment = { HTTP_PORT: '1', HTTP_PROXY: 'x', HOSTNAME: 'a', PORT: '1', PATH: '/bin', HOME: '/' };
  assert.deepEqual(findMisspeltVariables(environment), []);
});
