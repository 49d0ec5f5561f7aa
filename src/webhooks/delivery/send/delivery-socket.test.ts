import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isShortage } from './delivery-socket.ts';
import { createProgress, describeFailure } from './send-report.ts';

const failTo = (address: string, code: string) =>
  Object.assign(new Error(`connect ${code} ${address}:443`), { code, address, syscall: 'connect' });

test('isShortage(): to an IPv4 address no port is free; a system without IPv6 reports the same for an IPv6 address', () => {
  assert.equal(isShortage(failTo('192.0.2.1', 'EADDRNOTAVAIL')), true);
  const unreachable = failTo('2001:db8::1', 'EADDRNOTAVAIL');
  assert.equal(isShortage(unreachable), false);
  assert.equal(describeFailure(unreachable, createProgress()), 'host unreachable');
  assert.equal(isShortage(failTo('2001:db8::1', 'EMFILE')), true);
});
