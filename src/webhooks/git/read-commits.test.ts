import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMITS } from '../events/event-limits.ts';
import { createLogParser } from './read-commits.ts';

const FIELDS = `${'a'.repeat(40)}\0${'b'.repeat(40)}\0\0A\0a@x\0A\0a@x\x001772330400 +0100\0\0`;

interface Work {
  /** Bytes that the parser searched. */
  searched: number;
  kept: number;
}

/** Parses in pieces, as they come from a pipe, and counts the bytes that are searched. */
function parseCounting(output: Buffer, pieceBytes = 65_536): Work {
  const work = { searched: 0, kept: 0 };
  const parser = createLogParser();
  for (let at = 0; at < output.byteLength; at += pieceBytes) {
    const piece = output.subarray(at, at + pieceBytes);
    const indexOf = (byte: number, start: number) => Buffer.prototype.indexOf.call(piece, byte, start);
    piece.indexOf = ((byte: number, start: number = 0) => {
      const found = indexOf(byte, start);
      work.searched += (found < 0 ? piece.byteLength : found + 1) - start;
      return found;
    }) as typeof piece.indexOf;
    parser.push(piece);
  }
  work.kept = Buffer.byteLength(JSON.stringify(parser.listCommits()));
  return work;
}

const WORST: [title: string, output: (size: number) => string][] = [
  ['an endless message', (size) => `${FIELDS}${'m'.repeat(size)}\0`],
  ['an endless path', (size) => `${FIELDS}\0\0\nA\0${'p'.repeat(size)}\0`],
  ['empty pieces', (size) => `${FIELDS}\0${'\0'.repeat(size)}`],
  ['paths of one byte', (size) => `${FIELDS}\0\0\n${'A\0p\0'.repeat(size / 4)}`],
  ['statuses without a path', (size) => `${FIELDS}\0\0\n${'A\0\0'.repeat(size / 3)}`],
  ['a field without an end', (size) => 'a'.repeat(size)],
];

for (const [title, output] of WORST)
  test(`the parser of git's log looks at each byte once: ${title}`, () => {
    const size = 3 * 2 ** 16;
    for (const bytes of [Buffer.from(output(size)), Buffer.from(output(2 * size))]) {
      assert.equal(parseCounting(bytes).searched, bytes.byteLength);
      assert.equal(parseCounting(bytes, 7777).searched, bytes.byteLength);
    }
  });

test("the parser of git's log keeps a bounded part of its input", () => {
  const paths = Array.from({ length: 400_000 }, (_, index) => `A\0${'p'.repeat(200)}${index}\0`);
  const { kept } = parseCounting(Buffer.from(`${FIELDS}\0\0\n${paths.join('')}`));
  assert.ok(kept < 2_000_000, `${kept} bytes`);
  const message = parseCounting(Buffer.from(`${FIELDS}${'m'.repeat(5_000_000)}\0`));
  assert.ok(message.kept < LIMITS.text + 2000, `${message.kept} bytes`);
});
