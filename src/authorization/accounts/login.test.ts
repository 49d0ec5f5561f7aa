import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReadableName, toLogin, toName } from './login.ts';

const readable: readonly (readonly [what: string, name: string])[] = [
  ['Latin', 'GitHub 2'],
  ['Persian with a zero-width non-joiner', '\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645'],
  ['Latin letters before a joiner and Arabic ones', 'PDF\u200c\u0647\u0627'],
  ['Hindi with a zero-width joiner', '\u0915\u094d\u200d\u0937'],
  ['a family of emoji', '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'],
  ['an emoji with its colour', 'Ada \u2764\ufe0f'],
  ['a keycap', '1\ufe0f\u20e3'],
  ['a Han variant of the Ideographic Variation Database', '\u845b\u{e0100}\u57ce'],
  ['a standardized Han variant', '\u4fae\ufe00'],
  ['a Mongolian variation selector', '\u1820\u180b'],
  ['the flag of England', 'Team \u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}'],
  ['the flag of Scotland', '\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}'],
  ['the flag of Wales', '\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}'],
];
for (const [what, name] of readable)
  test(`a name may have ${what}`, () => {
    assert.equal(isReadableName(name), true);
  });

const refused: readonly (readonly [what: string, name: string])[] = [
  ['a zero-width non-joiner between Latin letters', 'Git\u200cHub'],
  ['a zero-width joiner between Latin letters', 'Git\u200dHub'],
  ['a variation selector between Latin letters', 'Git\ufe0fHub'],
  ['a joiner at the end', 'GitHub\u200d'],
  ['a joiner at the beginning', '\u200dGitHub'],
  ['a joiner between Cyrillic letters', '\u0430\u200d\u0431'],
  ['a line separator', 'Git\u2028Hub'],
  ['a paragraph separator', 'Git\u2029Hub'],
  ['an interlinear annotation', 'Git\ufff9Hub'],
  ['a Han variation selector after a Latin letter', 'Git\u{e0100}Hub'],
  ['a Mongolian variation selector after a Latin letter', 'Git\u180bHub'],
  ['tag letters that are no flag', 'Git\u{e0061}Hub'],
  ['tag letters of an unknown flag', '\u{1f3f4}\u{e0067}\u{e0062}\u{e0061}\u{e007f}'],
  ['a soft hyphen', 'Git\u00adHub'],
  ['a change of direction', 'Git\u202eHub'],
  ['half of a surrogate pair', 'Git\ud800'],
  ['nothing visible', '\u200b'],
];
for (const [what, name] of refused)
  test(`a name may not have ${what}`, () => {
    assert.equal(isReadableName(name), false);
  });

test('a name becomes a login by the letters that a login can have', () => {
  const cases = [
    ['Ada Lovelace', 'AdaLovelace'],
    ['ada@example.org', 'ada'],
    ['@ada@example.org', 'ada'],
    ['Zoë', 'Zoe'],
    ['..a..b..', 'a.b'],
    ['李', ''],
    ['李@example.org', ''],
  ];
  for (const [name, login] of cases) assert.equal(toLogin(name!), login);
});

test('toName() cuts a name between characters', () => {
  const long = 'a'.repeat(99);
  assert.equal(toName(`${long}\u{1f600}`, 'ada'), long);
  assert.equal(toName(` ${'\u{1f600}'.repeat(60)}`, 'ada'), '\u{1f600}'.repeat(50));
  assert.equal(toName('Ada\u202e', 'ada'), 'ada');
});

test('toLogin() takes no longer for a name that is endless', () => {
  const start = process.cpuUsage();
  assert.equal(toLogin(`ada${'\u0301\u0316'.repeat(100_000)}`), 'ada');
  const { user } = process.cpuUsage(start);
  // Linear work takes a few milliseconds, quadratic work more than ten seconds.
  assert.ok(user < 1_000_000, `${user} µs`);
});
