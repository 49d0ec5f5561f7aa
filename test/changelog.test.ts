/** The changelog keeps one list of each kind for each release. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const KINDS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];

function findRepeated(lines: readonly string[]): string[] {
  return lines.filter((line, index) => lines.indexOf(line) !== index);
}

test('the changelog names each kind of change once a release, and no change twice', () => {
  const [, ...releases] = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m);
  assert.ok(releases.length > 0);
  for (const release of releases) {
    const kinds = [...release.matchAll(/^### (.*)$/gm)].map(([, kind = '']) => kind);
    assert.deepEqual(findRepeated(kinds), []);
    assert.deepEqual(
      kinds.filter((kind) => !KINDS.includes(kind)),
      [],
    );
    // Two texts of one change, as a merge leaves them, begin alike.
    const beginnings = release
      .split('\n')
      .filter((line) => line.startsWith('- '))
      .map((line) => line.slice(0, 100));
    assert.deepEqual(findRepeated(beginnings), []);
  }
});
