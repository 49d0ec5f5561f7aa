/** Malicious model files with a right checksum: each is refused with the reason. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { observePool, tabulate } from '../../../test/support/prediction/observed-pool.ts';
import { runTrivet } from '../../../test/support/programs/run-trivet.ts';
import { isFailure } from '../../errors.ts';
import { createRandom } from '../gbdt/random.ts';
import { createLiveModel } from '../online/live-model.ts';
import { createPredictColumns } from '../schema/columns.ts';
import { trainModel } from '../training/train-model.ts';
import { decodeModel, encodeModel } from './model-codec.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-hostile-model-'));
after(() => rmSync(folder, { recursive: true }));

const FILE = Buffer.from(encodeModel(trainModel('m@1', tabulate(observePool({ rows: 300, servers: [1, 3] })))));
const HEADER_END = 16 + FILE.readUInt32LE(12);
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();

type Value = Record<string, never>;

/** The file with another header, and a right checksum. */
function writeHeader(text: string, rest: Uint8Array = FILE.subarray(HEADER_END, -32)): Buffer {
  const start = Buffer.from(FILE.subarray(0, 16));
  start.writeUInt32LE(Buffer.byteLength(text), 12);
  const content = Buffer.concat([start, Buffer.from(text), rest]);
  return Buffer.concat([content, sha256(content)]);
}

function withHeader(change: (header: never) => void): Buffer {
  const header = JSON.parse(FILE.toString('utf8', 16, HEADER_END)) as never;
  change(header);
  return writeHeader(JSON.stringify(header));
}

/** As `withHeader`, where the header has the number 4242 for a text that JSON cannot be made of. */
function withText(change: (header: never) => void, text: string): Buffer {
  const file = withHeader(change);
  return writeHeader(file.toString('utf8', 16, 16 + file.readUInt32LE(12)).replaceAll('4242', text));
}

/** Bytes of the forests changed, with right checksums of the forests and of the file. */
function withForest(change: (forests: Buffer) => void): Buffer {
  const forests = Buffer.from(FILE.subarray(HEADER_END, -64));
  change(forests);
  return writeHeader(FILE.toString('utf8', 16, HEADER_END), Buffer.concat([forests, sha256(forests)]));
}

/** The layout of the numbers of a forest: magic, version, features, forests; then cut points, then the first forest. */
function findFirstForest(forests: Buffer): number {
  let at = 20;
  for (let feature = forests.readUInt32LE(12); feature > 0; feature--) at += 4 + 4 * forests.readUInt32LE(at);
  return at;
}

const changes: readonly (readonly [title: string, file: () => Buffer, reason: RegExp])[] = [
  ['a header of null', () => writeHeader('null'), /header is not well formed: .*expected object/],
  ['a header that is not JSON', () => writeHeader('{"id'), /header is not JSON/],
  ['an id that is no text', () => withHeader((h: Value) => Object.assign(h, { id: 7 })), /id.* expected string/],
  ['no slot', () => withHeader((h: Value) => Object.assign(h, { slots: [] })), /slots/],
  [
    'a thousand million slots declared as a number',
    () => withHeader((h: Value) => Object.assign(h, { slots: 1_000_000_000 })),
    /slots.* expected array/,
  ],
  [
    'more pod types than are served',
    () =>
      withHeader(({ slots }: { slots: object[] }) => {
        for (let i = 0; i < 65; i++) slots.push({ podType: `p${i}`, targets: {}, forestBytes: 0 });
      }),
    /slots.* <=65 items/,
  ],
  [
    'a pod type twice',
    () =>
      withHeader(({ slots }: { slots: object[] }) => {
        for (let i = 0; i < 2; i++) slots.push({ podType: 'p', targets: {}, forestBytes: 0 });
      }),
    /no two may be of the same pod type/,
  ],
  ['an unknown statistic', () => withHeader((h: Value) => Object.assign(h, { statistic: 'p42' })), /statistic/],
  [
    'forests that lie before their start',
    () => withHeader(({ slots: [slot] }: { slots: object[] }) => Object.assign(slot!, { forestBytes: -9 })),
    /forestBytes.* >=0/,
  ],
  [
    'forests that end behind the file',
    () => withHeader(({ slots: [slot] }: { slots: object[] }) => Object.assign(slot!, { forestBytes: 1e15 })),
    /it ends too early/,
  ],
  [
    'bytes that nothing asks for',
    () => writeHeader(FILE.toString('utf8', 16, HEADER_END), FILE.subarray(HEADER_END)),
    /there is more in it/,
  ],
  ...ofTtft([
    ['an infinite price', { physics: { coefficients: { constant: 4242 }, floorMs: 1 } }, /coefficients/, '1e999'],
    ['a negative price', { physics: { coefficients: { constant: -1 }, floorMs: 1 } }, /coefficients\.constant/],
    ['a floor of 0', { physics: { coefficients: {}, floorMs: 0 } }, /floorMs/],
    ['trees that are believed twice', { forestShare: 2 }, /forestShare/],
    ['treeBaseMs below 0', { treeBaseMs: -1 }, /treeBaseMs/],
    ['a forest less than it has', { hasForest: false }, /more forests than its header says/],
    ['levels that are no numbers', { levels: { servers: { a: '1' }, podTypes: {} } }, /levels\.servers/],
    ['a level of e^700', { levels: { servers: { a: 700 }, podTypes: {} } }, /levels\.servers/],
    [
      'a calibration without quantiles',
      { calibration: { edges: [], quantiles: [], logMeans: [], rows: 1 } },
      /quantiles/,
    ],
    [
      'quantiles that fall',
      { calibration: { edges: [], quantiles: [9, 8, 7, 6, 5, 4, 3, 2], logMeans: [0], rows: 1 } },
      /quantiles of a bucket must be in rising order/,
    ],
    [
      'buckets out of order',
      { calibration: { edges: [2, 1], quantiles: Array(24).fill(0), logMeans: [0, 0, 0], rows: 1 } },
      /edges must be in rising order/,
    ],
  ]),
  [
    'a thousand million trees',
    () => withForest((forests) => forests.writeUInt32LE(1_000_000_000, findFirstForest(forests))),
    /a count of 1000000000 is over 10000/,
  ],
  [
    'a thousand million features',
    () => withForest((forests) => forests.writeUInt32LE(1_000_000_000, 12)),
    /a count of 1000000000 is over 256/,
  ],
  [
    'cut points that fall',
    () => withForest((forests) => forests.writeFloatLE(1e30, 24)),
    /cut points must be in rising order/,
  ],
  [
    'a cut point that is NaN',
    () => withForest((forests) => forests.writeFloatLE(Number.NaN, 24)),
    /cut points must be in rising order/,
  ],
  ...[Number.NaN, Number.POSITIVE_INFINITY, 1e300].map(
    (leaf) =>
      [
        `leaves of ${leaf}`,
        () => withForest((forests) => forests.writeDoubleLE(leaf, findFirstForest(forests) + 12)),
        /its trees must add up to at most/,
      ] as const,
  ),
];

/** A change of the header of TTFT each. */
function ofTtft(rows: readonly (readonly [title: string, change: object, reason: RegExp, text?: string])[]) {
  return rows.map(([title, change, reason, text = '4242']) => {
    const apply = (header: { slots: { targets: { ttft: object } }[] }) =>
      void Object.assign(header.slots[0]!.targets.ttft, change);
    return [title, () => withText(apply, text), reason] as const;
  });
}

for (const [title, file, reason] of changes)
  test(`a model file with ${title} is refused`, () => {
    assert.throws(
      () => decodeModel(file()),
      (error) => isFailure(error) && error.code === 'invalid' && reason.test(error.message),
    );
  });

test('a model file that was cut is refused at every length', () => {
  for (let length = 0; length < FILE.length; length += 1 + Math.floor(length / 40))
    assert.throws(() => decodeModel(FILE.subarray(0, length)), isFailure);
});

test('a model file with any bytes changed and right checksums is refused, or answers finite ordered times', () => {
  const random = createRandom(5);
  let served = 0;
  for (let trial = 0; trial < 400; trial++) {
    const file = withForest((forests) => {
      for (let i = 0; i < 1 + (trial % 3); i++)
        forests[Math.floor(random() ** 2 * forests.length)] = Math.floor(256 * random());
    });
    served += isServed(file) ? 1 : 0;
  }
  assert.ok(served > 100, `${served} of 400 were served`);
});

/** Whether it is a model; then every answer must be a time, before and after reports. */
function isServed(file: Buffer): boolean {
  let live: ReturnType<typeof createLiveModel>;
  try {
    live = createLiveModel(decodeModel(file));
  } catch (error) {
    assert.ok(isFailure(error), String(error));
    return false;
  }
  const [columns, predicted] = [
    createPredictColumns(64),
    { ttftMs: new Float64Array(64), tpotMs: new Float64Array(64) },
  ];
  columns.count = 64;
  columns.podTypes = [''];
  for (let i = 0; i < 64; i++) columns.inputTokenLength[i] = columns.inflightTokens[i] = 2 ** (i / 2) - 1;
  for (let round = 0; round < 3; round++) {
    live.predict(columns, predicted);
    for (const times of [predicted.ttftMs, predicted.tpotMs])
      assert.ok(times.every((ms) => ms > 0 && Number.isFinite(ms)));
    const forecast = live.forecast(columns, '', Buffer.from('10.0.0.0'));
    live.observe(forecast, 'ttft', { observedMs: 100 });
    live.observe(forecast, 'tpot', { observedMs: 20 });
  }
  return true;
}

test('model import refuses a hostile export, and serves what it served', async () => {
  const env = { TRIVET_DATA_DIR: join(folder, 'data') };
  const write = (name: string, bytes: Uint8Array) => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };
  const good = await runTrivet(['model', 'import', write('good.model', FILE)], { env });
  assert.match(good.stdout, /m@1 is served now/, good.stderr);
  const id = withHeader((header: Value) => Object.assign(header, { id: 7 }));
  const refused = await runTrivet(['model', 'import', write('id.model', id)], { env });
  assert.equal(refused.code, 2, refused.stderr);
  assert.match(refused.stderr, /Cannot read the model: its header is not well formed: id/);
  const list = await runTrivet(['model', 'list'], { env });
  assert.match(list.stdout, /m@1 +yes/);
  assert.doesNotMatch(list.stdout, /m@2/);
});
