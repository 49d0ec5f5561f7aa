/**
 * Log lines have one form: a sentence that begins with a capital and has no full stop. Values stand in the fields beside it, so that
 * every line of a kind has the same text. What the program could not do begins with "Cannot", as the messages of errors do.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

/** The last argument, where it is a literal. */
const CALL = /\blog\.(?:trace|debug|info|warn|error|fatal)\(\s*(?:(?:\{[^}]*\}|\w+),\s*)?(['"`])((?:\\.|(?!\1).)*)\1/g;
/** Those who read logs by program filter by these words. */
const EVENTS = ['request', 'started', 'stopping', 'stopped'];

const RULES: [fault: string, pattern: RegExp][] = [
  ['begins with a small letter', /^(?!gRPC )[a-z]/],
  ['ends with a full stop', /\.$/],
  ['has a value that belongs into a field', /\$\{/],
  ['begins otherwise than with "Cannot"', /^(Failed|Could not|Unable|Error)\b/],
];

function listLines(text: string): string[] {
  return [...text.matchAll(CALL)].map(([, , line = '']) => line).filter((line) => !EVENTS.includes(line));
}

function findFaults(text: string): string[] {
  return listLines(text).flatMap((line) =>
    RULES.filter(([, pattern]) => pattern.test(line)).map(([fault]) => `"${line}" ${fault}`),
  );
}

test('each log line is a sentence of one form', () => {
  const paths = globSync('src/**/*.ts').filter((path) => !path.endsWith('.test.ts'));
  const texts = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  assert.ok(texts.flatMap(({ text }) => listLines(text)).length > 50);
  assert.deepEqual(
    texts.flatMap(({ path, text }) => findFaults(text).map((fault) => `${path}: ${fault}`)),
    [],
  );
});

test('a log line of another form is found', () => {
  const write = (line: string) => `log.${'warn'}({ err }, ${line});`;
  assert.deepEqual(findFaults(write("'lost a lease'")), ['"lost a lease" begins with a small letter']);
  assert.deepEqual(findFaults(write("'Lost a lease.'")), ['"Lost a lease." ends with a full stop']);
  assert.deepEqual(findFaults(write("'Failed to renew'")), ['"Failed to renew" begins otherwise than with "Cannot"']);
  const template = '`Lost $' + '{name}`';
  assert.equal(findFaults(write(template)).length, 1);
  assert.deepEqual(findFaults(write("'Lost a lease'")), []);
});
