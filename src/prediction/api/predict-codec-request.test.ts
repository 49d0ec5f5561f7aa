import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeMessage, encodeMessage, PredictRequest } from '../../../test/support/grpc/proto-messages.ts';
import { int32, number, text } from '../../../test/support/grpc/wire-values.ts';
import { describeError, isFailure } from '../../errors.ts';
import { createPredictColumns, METRIC_COLUMNS, type PredictColumns } from '../schema/columns.ts';
import { MAX_INPUTS } from './predict-call.ts';
import { PredictRequestDecoder } from './predict-codec-request.ts';

interface Input {
  inputId: number;
  podType: string;
  serverIp: string;
  [metric: string]: number | string;
}

interface Request {
  targetModel: string;
  inputs: Input[];
}

const columns = createPredictColumns(MAX_INPUTS);
const decoder = new PredictRequestDecoder(columns);

function decode(bytes: Uint8Array): Request {
  const targetModel = decoder.decode(bytes);
  return { targetModel, inputs: Array.from({ length: columns.count }, (_, row) => readRow(columns, row)) };
}

function readRow(from: PredictColumns, row: number): Input {
  const start = from.serverIpStart[row]!;
  const input: Input = {
    inputId: from.inputId[row]!,
    podType: from.podTypes[from.podType[row]!]!,
    serverIp: Buffer.from(from.source.subarray(start, start + from.serverIpLength[row]!)).toString('utf8'),
  };
  for (const name of METRIC_COLUMNS) input[name] = from[name][row]!;
  return input;
}

let lastRefusal = '';

/** What a decoder makes of the bytes, or undefined when it refuses them. */
function attempt(read: () => Request): Request | undefined {
  lastRefusal = '';
  try {
    return read();
  } catch (error) {
    if (isFailure(error)) assert.equal(error.code, 'invalid');
    lastRefusal = describeError(error);
    return undefined;
  }
}

function decodeIndependently(bytes: Uint8Array): Request {
  const { targetModel, inputs } = decodeMessage<Request>(PredictRequest, bytes);
  return { targetModel, inputs };
}

/** Any int32, often small, often at an edge of the varint encoding. */
const anyInput = fc.record(
  {
    inputId: int32,
    podType: text,
    inputTokenLength: int32,
    prefixCacheScore: number,
    numRequestWaiting: int32,
    numRequestRunning: int32,
    kvCacheUsage: number,
    inflightTokens: int32,
    hbmUtilization: number,
    aiCoreUtilization: number,
    bandwidthUtilization: number,
    serverIp: text,
  },
  { requiredKeys: [] },
);
const anyRequest = fc.record({ targetModel: text, inputs: fc.array(anyInput, { maxLength: 12 }) });

test('a request is decoded to the values that protobufjs decodes', () => {
  fc.assert(
    fc.property(anyRequest, (request) => {
      const bytes = encodeMessage(PredictRequest, request);
      assert.deepEqual(decode(bytes), decodeIndependently(bytes));
    }),
    { numRuns: 500 },
  );
});

test('the fields of a message may come in any order, repeatedly, and among unknown ones', () => {
  const field = fc.oneof(
    anyInput.map((input) => wrap(2, shuffleFields(encodeInput(input)))),
    text.map((model) => wrap(1, Buffer.from(model))),
    unknownField(),
  );
  fc.assert(
    fc.property(fc.array(field, { maxLength: 12 }), (fields) => {
      const bytes = Buffer.concat(fields);
      assert.deepEqual(decode(bytes), decodeIndependently(bytes));
    }),
    { numRuns: 500 },
  );
});

test('fields may have tags that are longer than they need be', () => {
  fc.assert(
    fc.property(anyInput, anyInput, (first, second) => {
      const bytes = Buffer.concat([wrap(2, lengthenTags(encodeInput(first))), wrap(2, encodeInput(second))]);
      assert.deepEqual(decode(bytes), decodeIndependently(bytes));
    }),
    { numRuns: 300 },
  );
});

test('bytes that were damaged are accepted or refused as protobufjs does, with the same values', () => {
  const damage = fc.array(
    fc.record({ at: fc.nat(), value: fc.integer({ min: 0, max: 255 }), kind: fc.constantFrom('set', 'cut', 'insert') }),
    { minLength: 1, maxLength: 4 },
  );
  let accepted = 0;
  let refused = 0;
  fc.assert(
    fc.property(anyRequest, damage, (request, damages) => {
      let bytes: Buffer = encodeMessage(PredictRequest, request);
      for (const { at, value, kind } of damages) bytes = damageBytes(bytes, at, value, kind);
      const ours = attempt(() => decode(bytes));
      // protobufjs skips an unknown varint of any length; the format, and we, allow 10 bytes.
      if (lastRefusal.includes('longer than 10 bytes')) return;
      assert.deepEqual(
        ours,
        attempt(() => decodeIndependently(bytes)),
      );
      if (ours === undefined) refused += 1;
      else accepted += 1;
    }),
    { numRuns: 3000 },
  );
  assert.ok(accepted > 100 && refused > 100, `both ways must be exercised, got ${accepted} and ${refused}`);
});

const refusedBytes: [why: string, hex: string][] = [
  ['a string is cut off', '0a05616263'],
  ['a length is cut off', '0a80'],
  ['an input is longer than the message', '120508'],
  ['a varint of an input runs into the next field', '1202088a0a0161'],
  ['a double is cut off', '120521000000'],
  ['a string is not UTF-8', '0a02c328'],
  ['server_ip is not UTF-8', '12046202c328'],
  ['pod_type is not UTF-8', '12041202c328'],
  ['the wire type is 6', '0e'],
  ['the wire type is 7', '0f'],
  ['a group ends that never began', '0c'],
  ['a group ends as another', '1b24'],
  ['the field number is 0', '0200'],
  ['a varint has 11 bytes', '1811ffffffffffffffffffff01'],
  ['a tag has 6 bytes', 'aa8080808000'],
  ['a length is negative', '0affffffffffffffffff01'],
];
for (const [why, hex] of refusedBytes)
  test(`a request is refused when ${why}`, () => {
    assert.throws(
      () => decoder.decode(Buffer.from(hex, 'hex')),
      (error) => isFailure(error) && error.code === 'invalid',
    );
  });

test('groups deeper than 100 are refused, and a request after a refused one is decoded', () => {
  assert.throws(() => decoder.decode(Buffer.alloc(500, 0x1b)), /nested too deep/);
  assert.deepEqual(decode(encodeMessage(PredictRequest, { targetModel: 'm' })), { targetModel: 'm', inputs: [] });
});

test('a known field with another wire type is an unknown field', () => {
  const bytes = Buffer.from('0801' + '1204' + '0d01020304' + '1500000000', 'hex');
  assert.deepEqual(
    attempt(() => decode(bytes)),
    attempt(() => decodeIndependently(bytes)),
  );
});

test('a negative int32 takes ten bytes and keeps its value', () => {
  const bytes = Buffer.from(`120b08${'ff'.repeat(9)}01`, 'hex');
  assert.equal(decode(bytes).inputs[0]?.inputId, -1);
});

test('4,096 inputs are decoded, one more is refused with the limit', () => {
  const inputs = Array.from({ length: MAX_INPUTS }, (_, inputId) => ({ inputId }));
  assert.equal(decode(encodeMessage(PredictRequest, { inputs })).inputs.length, MAX_INPUTS);
  inputs.push({ inputId: 1 });
  assert.throws(() => decode(encodeMessage(PredictRequest, { inputs })), /inputs must be at most 4,096/);
});

test('every input may have a pod type of its own', () => {
  const inputs = Array.from({ length: 300 }, (_, index) => ({ podType: `pool-${index % 100}` }));
  const decoded = decode(encodeMessage(PredictRequest, { inputs }));
  assert.deepEqual(
    decoded.inputs.map((input) => input.podType),
    inputs.map((input) => input.podType),
  );
  assert.equal(columns.podTypes.length, 100);
});

function encodeInput(input: object): Buffer {
  const bytes = encodeMessage(PredictRequest, { inputs: [input] });
  return bytes.subarray(bytes.length > 129 ? 3 : 2);
}

/** A length-delimited field, its length in as many bytes as a lazy encoder may take. */
function wrap(fieldNumber: number, content: Uint8Array): Buffer {
  const { length } = content;
  return Buffer.concat([Buffer.from([(fieldNumber << 3) | 2, (length & 0x7f) | 0x80, length >> 7]), content]);
}

/** The same fields, last first, with one of them twice. */
function shuffleFields(message: Buffer): Buffer {
  const fields = splitFields(message);
  return Buffer.concat([...fields.toReversed(), ...fields.slice(0, 1)]);
}

test('requests that are read into the same memory, one after the other, are each decoded', () => {
  const memory = Buffer.alloc(1000);
  const requests = ['aaaa', 'bbbb', 'aaaa'].map((name) => ({
    targetModel: `model-${name}`,
    inputs: [name, name, name.toUpperCase()].map((podType, inputId) => ({
      inputId,
      podType,
      serverIp: `10.0.${name}`,
    })),
  }));
  for (const request of requests) {
    const length = encodeMessage(PredictRequest, request).copy(memory);
    const { targetModel, inputs } = decode(memory.subarray(0, length));
    const read = inputs.map(({ inputId, podType, serverIp }) => ({ inputId, podType, serverIp }));
    assert.deepEqual({ targetModel, inputs: read }, request);
  }
});

/** The same fields, each with a tag of two bytes where one would do. */
function lengthenTags(message: Buffer): Buffer {
  return Buffer.concat(splitFields(message).flatMap((field) => [Buffer.of(field[0]! | 0x80, 0x00), field.subarray(1)]));
}

function splitFields(message: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let position = 0; position < message.length; ) {
    const start = position;
    const tag = message[position++]!;
    if ((tag & 7) === 1) position += 8;
    else {
      let value = 0;
      let shift = 0;
      for (let byte = 0x80; byte >= 0x80; shift += 7) {
        byte = message[position++]!;
        if (shift < 28) value |= (byte & 0x7f) << shift;
      }
      if ((tag & 7) === 2) position += value;
    }
    fields.push(message.subarray(start, position));
  }
  return fields;
}

function unknownField(): fc.Arbitrary<Buffer> {
  return fc
    .constantFrom('a00105', 'a10101020304050607 08', 'a20103616263', 'a301a80105a401', 'a50101020304')
    .map((hex) => Buffer.from(hex.replaceAll(' ', ''), 'hex'));
}

function damageBytes(bytes: Buffer, at: number, value: number, kind: string): Buffer {
  const index = bytes.length === 0 ? 0 : at % bytes.length;
  if (kind === 'cut') return bytes.subarray(0, index);
  if (kind === 'insert') return Buffer.concat([bytes.subarray(0, index), Buffer.from([value]), bytes.subarray(index)]);
  const damaged = Buffer.from(bytes);
  damaged[index] = value;
  return damaged;
}
