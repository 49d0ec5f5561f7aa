import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createExplainer } from './explain.ts';
import { formatsOf, isTimeZone } from './formats.ts';
import { type Language, negotiateLanguage } from './language.ts';
import { plural } from './plural.ts';

const headers: readonly (readonly [header: string | undefined, language: Language | undefined])[] = [
  [undefined, undefined],
  ['', undefined],
  ['de-DE,de;q=0.9', undefined],
  ['*', undefined],
  ['en', 'en'],
  ['zh', 'zh-CN'],
  ['zh-CN,zh;q=0.9,en;q=0.8', 'zh-CN'],
  ['zh-Hans-SG', 'zh-CN'],
  ['ZH-cn', 'zh-CN'],
  ['zh-TW', 'zh-CN'],
  ['en-GB,zh;q=0.5', 'en'],
  ['en;q=0.5,zh;q=0.9', 'zh-CN'],
  ['zh;q=0,en;q=0.1', 'en'],
  ['zh;q=0', undefined],
  ['de,fr;q=0.9,zh;q=0.1', 'zh-CN'],
  ['zha,eng', undefined],
  [`${'x'.repeat(2000)},zh`, undefined],
];

for (const [header, language] of headers)
  test(`negotiateLanguage() of ${JSON.stringify(header)?.slice(0, 40)} is ${language}`, () =>
    assert.equal(negotiateLanguage(header), language));

const MOMENT = Date.UTC(2026, 10, 22, 16, 41, 5);

test('formatsOf() writes times in the zone of the reader, and names the zone', () => {
  const utc = formatsOf({ language: 'en', timeZone: 'UTC' });
  const shanghai = formatsOf({ language: 'zh-CN', timeZone: 'Asia/Shanghai' });
  assert.equal(`${utc.minute(MOMENT)} ${utc.zone(MOMENT)}`, '2026-11-22 16:41 UTC');
  assert.equal(`${shanghai.second(MOMENT)} ${shanghai.zone(MOMENT)}`, '2026-11-23 00:41:05 GMT+8');
  assert.equal(utc.clock(MOMENT), '16:41');
  assert.equal(shanghai.day(MOMENT), '11-23');
});

test('formatsOf() writes dates, durations and counts in the language of the reader', () => {
  const english = formatsOf({ language: 'en', timeZone: 'UTC' });
  const chinese = formatsOf({ language: 'zh-CN', timeZone: 'UTC' });
  assert.equal(english.date(MOMENT), 'Nov 22, 2026');
  assert.equal(chinese.date(MOMENT), '2026年11月22日');
  assert.equal(english.duration(3 * 86_400_000), '3 days');
  assert.equal(chinese.duration(5 * 3_600_000), '5小时');
  assert.equal(english.duration(-1), '0 sec');
  assert.equal(english.count(12_345), '12,345');
  assert.deepEqual([1234.5, 12.34, 1.234].map(english.number), ['1,235', '12.3', '1.23']);
});

test('a share is 100 percent only for all, and 0 only for none', () => {
  const { percent } = formatsOf({ language: 'en', timeZone: 'UTC' });
  const shares = [100, 99.9999, 99.94, 50, 1 / 3, 0.001, 0, 120].map(percent);
  assert.deepEqual(shares, ['100', '99.9', '99.9', '50', '0.33', '0.01', '0', '120']);
});

test('plural() follows the rules of the language', () => {
  assert.equal(plural(0, 'delivery', 'deliveries'), '0 deliveries');
  assert.equal(plural(1, 'delivery', 'deliveries'), '1 delivery');
  assert.equal(plural(1200, 'delivery', 'deliveries'), '1,200 deliveries');
});

test('isTimeZone() takes names that the runtime knows', () => {
  for (const name of ['UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+3'])
    assert.ok(isTimeZone(name), name);
  for (const name of ['', 'Mars/Base', '../../etc', '+08:00', 'UTC;']) assert.ok(!isTimeZone(name), name);
});

test('an explainer fills the parts in, and leaves other messages as they are', () => {
  const explain = createExplainer([['Cannot take "{}": it has {} of 10 (at most)', '“{1}”有 {2} 个']]);
  assert.equal(explain('Cannot take "a $& {2}": it has 12 of 10 (at most).'), '“a $& {2}”有 12 个');
  assert.equal(explain('Cannot take "a"'), 'Cannot take "a"');
  assert.equal(explain('Cannot take "a": it has 12 of 10 (at most), got 12.'), '“a”有 12 个');
});

test('an explainer looks for each piece of a phrase once, however often a stranger wrote it', () => {
  const explain = createExplainer([['Cannot {}: {} must be at most {} characters', '{2} 最多 {3} 个字符']]);
  const message = `Cannot find "${': '.repeat(1000)}${' must be at most '.repeat(60)}${' characters, got '.repeat(100)}`;
  assert.equal(
    explain(`${message}${'a'.repeat(3000)}"`),
    `${': '.repeat(999)} 最多 ${' must be at most '.repeat(59)} 个字符`,
  );
  assert.equal(explain(`${message.replaceAll(' characters', '')}"`), `${message.replaceAll(' characters', '')}"`);
});

const localTimes: readonly (readonly [text: string, timeZone: string, instant: string | undefined])[] = [
  ['2026-11-22T16:41', 'UTC', '2026-11-22T16:41:00.000Z'],
  ['2026-11-22T16:41:05', 'Asia/Shanghai', '2026-11-22T08:41:05.000Z'],
  ['2026-07-01T12:00', 'Europe/Berlin', '2026-07-01T10:00:00.000Z'],
  // The clock goes from 2 to 3 on this day; a time before and one after.
  ['2026-03-29T01:30', 'Europe/Berlin', '2026-03-29T00:30:00.000Z'],
  ['2026-03-29T03:30', 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
  ['2026-02-30T00:00', 'UTC', undefined],
  ['0000-01-01T00:00', 'UTC', undefined],
  ['0999-01-01T00:00', 'Asia/Shanghai', undefined],
  ['1000-01-01T00:00', 'America/New_York', undefined],
  ['yesterday', 'UTC', undefined],
  ['2026-11-22T16:41Z', 'UTC', undefined],
];

for (const [text, timeZone, instant] of localTimes)
  test(`readInstant() of ${text} in ${timeZone} is ${instant}`, () =>
    assert.equal(formatsOf({ language: 'en', timeZone }).readInstant(text)?.toISOString(), instant));
