/** Generates values of the protobuf wire types, with edge cases more often than by chance. */
import fc from 'fast-check';

export const int32 = fc.oneof(
  fc.integer({ min: -2, max: 200 }),
  fc.constantFrom(127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455, 268_435_456, 2 ** 31 - 1, -(2 ** 31)),
  fc.integer(),
);
export const number = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.double(), fc.constantFrom(0, -0));
export const text = fc.oneof(
  fc.constantFrom('', 'decode', 'prefill', '10.0.0.7'),
  fc.string({ unit: 'grapheme', maxLength: 70 }),
);
