import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import { createDeliveryUuid, isUuid, periodOfUuid } from './delivery-uuid.ts';

test('createDeliveryUuid() has version, variant and time where RFC 9562 §5.7 has them', () => {
  // The example of appendix A.6.
  const random = Buffer.from('0cc318c4dc0c0c07398f', 'hex');
  assert.equal(createDeliveryUuid(0x017f22e279b0, random), '017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
});

test('periodOfUuid() holds the time of creation', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (nowMs) => {
      const uuid = createDeliveryUuid(nowMs, randomBytes(10));
      assert.ok(isUuid(uuid));
      const { sinceMs, untilMs } = periodOfUuid(uuid);
      assert.ok(sinceMs <= nowMs && nowMs < untilMs && untilMs - sinceMs <= 120_000);
    }),
  );
});

test('a UUID without a time may be of any', () => {
  assert.deepEqual(periodOfUuid(randomUUID()), { sinceMs: 0, untilMs: Number.MAX_SAFE_INTEGER });
});
