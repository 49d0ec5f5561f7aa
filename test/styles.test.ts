/**
 * What the checks of pages in a browser rely on (support/pages/browser.ts, support/pages/page-flaws.ts): in dark they look at colours alone, at
 * 375 px at what may have moved since 320 px, and in Chinese at no colours of the dark scheme.
 */
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

const REM_PX = 16;
const [NARROW_PX, WIDE_PX] = [320, 375];

/** What a sheet shows or hides by a width between the two of phones. */
function findChangesAmongPhones(css: string): string[] {
  return [...css.matchAll(/@media[^{]*?(?:min|max)-width:\s*([\d.]+)(rem|px)[^{]*\{((?:[^{}]*\{[^{}]*\})*)/g)]
    .filter(([, width, unit]) => isAmongPhones(Number(width) * (unit === 'rem' ? REM_PX : 1)))
    .flatMap(([, , , block = '']) => block.match(/\b(?:display|visibility|content|order|position)\s*:[^;}]*/g) ?? []);
}

const isAmongPhones = (widthPx: number) => widthPx >= NARROW_PX && widthPx <= WIDE_PX;

/** Selectors that depend on the language of the page or of a part of it. */
function findStylesOfLanguages(css: string): string[] {
  return css.match(/:lang\([^)]*\)|\[lang[^\]]*\]/g) ?? [];
}

/** Pairs of fills of charts that stand side by side, and the card behind them. */
const SIDE_BY_SIDE = [
  ['.up', '.down'],
  ['.up', '.slow'],
  ['.up', '--card'],
  ['.down', '--card'],
  ['.slow', '--card'],
] as const;
/** WCAG 1.4.11. */
const LEAST_CONTRAST = 3;

function findPaleFills(css: string): string[] {
  return readSchemes(css).flatMap((scheme, at) =>
    SIDE_BY_SIDE.flatMap(([one, other]) => {
      const contrast = computeContrast(readFill(css, scheme, one), readFill(css, scheme, other));
      return contrast >= LEAST_CONTRAST ? [] : [`${at === 0 ? 'light' : 'dark'}: ${one} ${other}`];
    }),
  );
}

function readFill(css: string, scheme: ReadonlyMap<string, string>, name: string): string {
  const used = new RegExp(`^\\${name} \\{\\s*fill: var\\((--[\\w-]+)\\)`, 'm').exec(css)?.[1] ?? name;
  const colour = scheme.get(used);
  assert.ok(colour !== undefined, name);
  return colour;
}

function computeContrast(one: string, other: string): number {
  const [light = 0, dark = 0] = [one, other].map(computeLuminance).sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

/** WCAG 2.2, relative luminance. */
function computeLuminance(colour: string): number {
  const digits = colour.length === 4 ? colour.replaceAll(/[\da-f]/g, '$&$&') : colour;
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(digits.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const PAGE_SHEETS = ['src/pages/styles.css', 'src/console/frame/console.css', 'src/api-reference/reference.css'];
const SHEETS = {
  pages: PAGE_SHEETS.map((path) => readFileSync(path, 'utf8')).join('\n'),
  reports: PAGE_STYLE,
};

for (const [name, css] of Object.entries(SHEETS)) {
  test(`the dark scheme of ${name} changes colours alone`, () => assert.deepEqual(findOtherChanges(css), []));
  test(`the rule can fail: the dark scheme of ${name} changes colours alone`, () => {
    const dark = /(prefers-color-scheme:\s*dark\)\s*\{\s*:root\s*\{)/;
    const wide = css.replace(dark, '$1--gap: 9px; width: 9px;');
    assert.deepEqual(findOtherChanges(wide), ['--gap', 'width']);
  });
  test(`the styles of ${name} show and hide nothing between 320 and 375 px`, () =>
    assert.deepEqual(findChangesAmongPhones(css), []));
  test(`the rule can fail: the styles of ${name} show and hide nothing between 320 and 375 px`, () => {
    const hiding = `${css}@media (max-width: 22rem) { .a { color: red } .b { display: none } }`;
    assert.deepEqual(findChangesAmongPhones(hiding), ['display: none ']);
  });
  test(`no style of ${name} depends on the language`, () => assert.deepEqual(findStylesOfLanguages(css), []));
  test(`the rule can fail: no style of ${name} depends on the language`, () =>
    assert.deepEqual(findStylesOfLanguages(`${css} p:lang(zh) { color: red }`), [':lang(zh)']));
}

test('fills of charts that stand side by side differ in lightness, in both schemes', () =>
  assert.deepEqual(findPaleFills(SHEETS.pages), []));
test('the rule can fail: fills of charts that stand side by side differ in lightness, in both schemes', () =>
  assert.deepEqual(findPaleFills(SHEETS.pages.replace('fill: var(--down)', 'fill: var(--up)')), [
    'light: .up .down',
    'dark: .up .down',
  ]));
