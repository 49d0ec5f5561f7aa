/** Every text of the pages and mails is there in each language, and is used. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { referenceTexts } from '../src/api-reference/reference-texts.ts';
import { referenceTextsZh } from '../src/api-reference/reference-texts-zh.ts';
import { allMessages } from '../src/authorization/messages/all-messages.ts';
import { allMessagesZh } from '../src/authorization/messages/all-messages-zh.ts';
import { mailMessages } from '../src/authorization/messages/mail-messages.ts';
import { mailMessagesZh } from '../src/authorization/messages/mail-messages-zh.ts';
import { consoleTexts } from '../src/console/texts/console-texts.ts';
import { consoleTextsZh } from '../src/console/texts/console-texts-zh.ts';
import { noticeTexts } from '../src/notices/notice-texts.ts';
import { noticeTextsZh } from '../src/notices/notice-texts-zh.ts';
import { explainFrameFailure, PHRASES_ZH } from '../src/pages/failures/failures-zh.ts';
import { frameTexts } from '../src/pages/frame-texts.ts';
import { frameTextsZh } from '../src/pages/frame-texts-zh.ts';
import { findUnusedTexts, listTextPaths, listUsedPaths } from './support/rules/text-uses.ts';

interface Catalogue {
  readonly name: string;
  readonly english: object;
  readonly chinese: object;
  /** The sources that may use its texts. */
  readonly sources: readonly string[];
}

const CATALOGUES: readonly Catalogue[] = [
  {
    name: 'frame',
    english: frameTexts,
    chinese: frameTextsZh,
    sources: ['src/{pages,console,authorization,api-reference}/**/*.ts'],
  },
  { name: 'console', english: consoleTexts, chinese: consoleTextsZh, sources: ['src/console/**/*.ts'] },
  { name: 'authorization', english: allMessages, chinese: allMessagesZh, sources: ['src/authorization/**/*.ts'] },
  { name: 'reference', english: referenceTexts, chinese: referenceTextsZh, sources: ['src/api-reference/*.ts'] },
  {
    name: 'notices',
    english: noticeTexts,
    chinese: noticeTextsZh,
    sources: ['src/{notices,webhooks/management,prediction/observations}/*.ts'],
  },
];

const IS_CATALOGUE = /\.test\.ts$|-(texts|messages|descriptions)(-zh)?\.ts$/;

function readUses(patterns: readonly string[]): Set<string> {
  const files = globSync(patterns).filter((path) => !IS_CATALOGUE.test(path));
  return new Set(files.flatMap((path) => [...listUsedPaths(readFileSync(path, 'utf8'), ['texts', 'messages'])]));
}

/** Those of the frame are part of each catalogue. */
function listOwnPaths({ name, english }: Catalogue): string[] {
  return listTextPaths(english).filter((path) => name === 'frame' || !Object.hasOwn(frameTexts, path.split('.')[0]!));
}

for (const catalogue of CATALOGUES) {
  test(`the texts of the ${catalogue.name} are the same in both languages`, () =>
    assert.deepEqual(listTextPaths(catalogue.chinese).sort(), listTextPaths(catalogue.english).sort()));

  test(`each text of the ${catalogue.name} is used`, () =>
    assert.deepEqual(findUnusedTexts(listOwnPaths(catalogue), readUses(catalogue.sources)), []));
}

test('the mails are the same in both languages', () =>
  assert.deepEqual(Object.keys(mailMessagesZh), Object.keys(mailMessages)));

test('each Chinese text has Chinese in it, or is a name', () => {
  const isName = /^[\d\s%–.,:，、。：/+()\w@ºMAPE-]*$/;
  for (const { chinese, name } of CATALOGUES)
    for (const path of listTextPaths(chinese)) {
      const text = path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], chinese);
      if (typeof text !== 'string' || /\p{Script=Han}/u.test(text)) continue;
      assert.match(text, isName, `${name}: ${path}`);
      assert.ok(text.split(' ').length <= 3, `${name}: ${path} is "${text}"`);
    }
});

test('texts in Chinese quote no word that the page shows in Chinese, and write no space before %', () => {
  const files = globSync('src/**/*-zh.ts');
  assert.ok(files.length > 15);
  const flaws = files.flatMap((path) => {
    const source = readFileSync(path, 'utf8');
    // A command stays as it is typed.
    const quoted = [...source.matchAll(/“([A-Za-z][^”]*)”/g)].filter(([, text]) => !text!.startsWith('trivet '));
    return [...quoted, ...source.matchAll(/[\d}] %/g)].map(([text]) => `${path}: ${text}`);
  });
  assert.deepEqual(flaws, []);
});

test('every test of pages looks at them in both languages', () => {
  const files = globSync('{src,test}/**/*.ts').filter((path) =>
    /\bfindFlaws\b.*from '/.test(readFileSync(path, 'utf8')),
  );
  // The report of an evaluation is in English alone.
  assert.deepEqual(files.sort(), ['src/prediction/evaluation/report.test.ts', 'test/support/pages/page-flaws.ts']);
});

test('a text that nothing uses is found', () => {
  const paths = listTextPaths({ page: { title: 'a', lead: 'b', states: { on: 'c', off: 'd' } }, save: 'e', gone: 'f' });
  const source = 'const t = texts.page;\nshow(t.title, t.states[state], texts.save, other.lead);';
  assert.deepEqual(findUnusedTexts(paths, listUsedPaths(source, ['texts'])), ['page.lead', 'gone']);
});

/** Rooms whose refusals pages show. */
const SHOWN_BY_PAGES = [
  'src/{pages,console}/**/*.ts',
  'src/http/{failure-response,parser-limits,body/*}.ts',
  'src/authorization/{account-pages,accounts,applications,password-links,people-pages,sign-in}/*.ts',
  'src/authorization/administration/{invite-people,manage-people,people-store,person}.ts',
  'src/authorization/oauth/{authorize-request,consent-answer,device-routes}.ts',
  'src/authorization/tokens/personal-token.ts',
  'src/webhooks/{addresses,management,repositories}/*.ts',
  'src/prediction/registry/{model-store,what-if}.ts',
  'src/prediction/capacity/*.ts',
];

/** Any page shows that the database is away, but no fault of the program in these modules: they are logged. */
const SHOWN_IF_UNAVAILABLE = ['src/database/{portable-sql,startup/check-ready,postgres/*,sqlite/*}.ts'];

/** Refusals in these modules that no page shows, and those whose rule is put in as a whole, which has a phrase of its own. */
const WITHOUT_PHRASE: readonly [start: string, reason: string][] = [
  ['Cannot update the webhook: remove_password', 'by the API alone'],
  ['Cannot update the webhook: this change could show', 'by the API alone'],
  ['403 Forbidden', 'by the API alone'],
  ['Forbidden: the token is limited', 'by the API alone'],
  ['Project not found:', 'a page says that it does not exist'],
  ['Cannot create the organization', 'by command and API alone'],
  ['Cannot remove the member', 'by command and API alone'],
  ['Cannot open the database', 'at the start alone'],
  ['Cannot read DATABASE_URL', 'at the start alone'],
  ['Cannot find the capacity: there are {}', 'its rule'],
  ['Cannot use this url: it {}', 'its rule'],
  ['Cannot create the token: {} {}', 'its rule'],
  ['Cannot use the password: {}', 'its rule'],
  ['Cannot save the application: {} {}', 'its rule'],
  ['Cannot register the redirect URI: it must {}', 'its rule'],
  ['{} must be {}', 'its rule'],
  ['{} {}', 'its rule'],
];

function listRefusals(): string[] {
  const text = String.raw`(?:\`((?:[^\`\\]|\\.)*)\`|'((?:[^'\\]|\\.)*)')`;
  const any = new RegExp(String.raw`new Failure\(\s*'\w+',\s*${text}`, 'g');
  const unavailable = new RegExp(String.raw`new Failure\(\s*'(?:unavailable|deadline|invalid)',\s*${text}`, 'g');
  return [...matchRefusals(SHOWN_BY_PAGES, any), ...matchRefusals(SHOWN_IF_UNAVAILABLE, unavailable)];
}

function matchRefusals(patterns: readonly string[], refusal: RegExp): string[] {
  const paths = globSync(patterns).filter((path) => !path.endsWith('.test.ts'));
  const sources = paths.map((path) => readFileSync(path, 'utf8'));
  return sources.flatMap((source) =>
    [...source.matchAll(refusal)].map(([, template, text]) =>
      (template ?? text ?? '').replaceAll("\\'", "'").replace(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, '{}'),
    ),
  );
}

test('each refusal that a page shows has a phrase in Chinese', () => {
  const refusals = listRefusals();
  assert.ok(refusals.length > 50, `${refusals.length} refusals were found`);
  const without = refusals.filter(
    (refusal) => !/\p{Script=Han}/u.test(explainFrameFailure(refusal.replaceAll('{}', 'x7'))),
  );
  assert.deepEqual(
    without.filter((refusal) => !WITHOUT_PHRASE.some(([start]) => refusal.startsWith(start))),
    [],
  );
  for (const [start] of WITHOUT_PHRASE)
    assert.ok(
      without.some((refusal) => refusal.startsWith(start)),
      `"${start}" is no longer needed`,
    );
});

/** Why an attempt got no response: what names it in these functions and calls. */
const NAMES_REASON = /function describe(?:Failure|DnsError)\([\s\S]*?\n\}|\breport(?:Unsent)?\([^;]*;/g;

function listAttemptReasons(): string[] {
  const paths = globSync(['src/webhooks/delivery/{send,worker}/*.ts', 'src/webhooks/addresses/*.ts']);
  const sources = paths.filter((path) => !path.endsWith('.test.ts')).map((path) => readFileSync(path, 'utf8'));
  const parts = sources.flatMap((source) => [...source.matchAll(NAMES_REASON)].map(([part]) => part));
  // A reason has several words, a code or a kind has one.
  return parts.flatMap((part) => [...part.matchAll(/['`](\w+ [^'`]*)['`]/g)].map(([, reason]) => reason!));
}

test('each reason of an attempt has a phrase in Chinese', () => {
  const reasons = listAttemptReasons();
  for (const known of ['blocked address', 'host unreachable', 'name resolution timeout'])
    assert.ok(reasons.includes(known));
  assert.deepEqual(
    reasons.filter((reason) => !/\p{Script=Han}/u.test(explainFrameFailure(reason))),
    [],
  );
});

test('no refusal has two phrases', () => {
  const english = PHRASES_ZH.map(([phrase]) => phrase);
  assert.deepEqual(
    english.filter((phrase, index) => english.indexOf(phrase) !== index),
    [],
  );
});

test('each phrase for a refusal has an English text in the program', () => {
  const program = globSync('src/**/*.ts')
    .filter((path) => !path.endsWith('failures-zh.ts') && !path.endsWith('.test.ts'))
    .map((path) => readFileSync(path, 'utf8').replaceAll("\\'", "'"))
    .join('\n');
  assert.deepEqual(
    PHRASES_ZH.flatMap(([english]) => english.split('{}')).filter((part) => !isWritten(program, part)),
    [],
  );
});

/** A rule may be put together: "Cannot save the application:", the field, and what it must be. */
function isWritten(program: string, part: string): boolean {
  const text = part
    .replace(/, got "$/, '')
    .replaceAll('\\', '\\\\')
    .trim();
  if (program.includes(text) || text.length < 8) return true;
  const [head = '', rule = ''] = text.split(/: (.*)/s);
  const tails = [rule, rule.replace(/^\w+ /, ''), rule.replace(/^it must /, '')];
  return rule !== '' && program.includes(head) && tails.some((tail) => program.includes(tail));
}
