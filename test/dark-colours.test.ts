/** Pages are checked in dark for their colours alone (see support/browser.ts), since nothing else of them is dark. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PAGE_STYLE } from '../src/prediction/evaluation/report-style.ts';

const COLOUR = /#[\da-f]{3,8}\b/g;

/** The custom properties of the first two `:root`, which are the light and the dark ones. */
function readSchemes(css: string): Map<string, string>[] {
  const roots = [...css.matchAll(/:root\s*\{([^}]*)\}/g)].map(([, block = '']) => block);
  return roots.map((block) => new Map(block.split(';').filter(isProperty).map(splitProperty)));
}

const isProperty = (line: string) => line.includes(':') && !line.includes('color-scheme');
const splitProperty = (line: string): [string, string] => {
  const [name = '', value = ''] = line.split(':');
  return [name.trim(), value.trim()];
};

/** Names of dark properties that are new, or differ from the light ones in more than a colour. */
function findOtherChanges(css: string): string[] {
  assert.equal(css.match(/prefers-color-scheme/g)?.length, 1, 'one block is dark');
  const [light, dark, ...more] = readSchemes(css);
  assert.ok(light !== undefined && dark !== undefined && dark.size > 5 && more.length === 0);
  const withoutColours = (value: string | undefined) => value?.replaceAll(COLOUR, '#');
  const changed = [...dark].filter(
    ([name, value]) => !name.startsWith('--') || withoutColours(value) !== withoutColours(light.get(name)),
  );
  return changed.map(([name]) => name);
}

const SHEETS = { pages: readFileSync('src/pages/styles.css', 'utf8'), reports: PAGE_STYLE };

for (const [name, css] of Object.entries(SHEETS)) {
  test(`the dark scheme of ${name} changes colours alone`, () => assert.deepEqual(findOtherChanges(css), []));
  test(`the rule can fail: the dark scheme of ${name} changes colours alone`, () => {
    const dark = /(prefers-color-scheme:\s*dark\)\s*\{\s*:root\s*\{)/;
    const wide = css.replace(dark, '$1--gap: 9px; width: 9px;');
    assert.deepEqual(findOtherChanges(wide), ['--gap', 'width']);
  });
}
