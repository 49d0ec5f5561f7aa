import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Failure } from '../../errors.ts';
import { realWorld } from '../../world.ts';
import { attemptSubjects, drain, failuresOf, waitAfter } from '../accounts/sign-in-throttle.ts';
import { checkNewPassword } from './password.ts';
import { parseReturnTo } from './return-to.ts';
import { createRecoveryCodes, createTotpSeed, findTimeStep, formatTotpUri } from './totp.ts';

test('S02 no address of another site is a way back', () => {
  const refused = [
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '%2f%2fevil.example',
    'https://evil.example',
    'javascript:alert(1)',
    '/.//evil.example',
    '/..//evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '',
    null,
    undefined,
    '/a\\b',
    `/${'a'.repeat(100_000)}`,
    `/?${'"'.repeat(5000)}`,
  ];
  for (const value of refused) assert.equal(parseReturnTo(value), undefined, String(value).slice(0, 40));
  assert.equal(parseReturnTo('/oauth/authorize?state=%2F%2Fx&a=b#c'), '/oauth/authorize?state=%2F%2Fx&a=b#c');
  assert.equal(parseReturnTo('/%2f%2fevil.example'), '/%2f%2fevil.example');
});

test('S02 a way back never leaves this service, whatever it is', () => {
  const pieces = fc.constantFrom(
    '/',
    '\\',
    '.',
    '..',
    '%2f',
    '%5c',
    ':',
    '@',
    '?',
    '#',
    'evil.example',
    '\t',
    '\n',
    'a',
  );
  const path = fc.oneof(
    fc.array(pieces, { maxLength: 12 }).map((parts) => `/${parts.join('')}`),
    fc.string(),
  );
  fc.assert(
    fc.property(path, (text) => {
      const parsed = parseReturnTo(text);
      if (parsed === undefined) return;
      assert.equal(new URL(parsed, 'https://id.example.org').origin, 'https://id.example.org');
      assert.match(parsed, /^\/(?![/\\])/);
      assert.equal(parseReturnTo(parsed), parsed);
    }),
    { numRuns: 2000 },
  );
});

test('S07 the wait starts after the free failures, doubles, and ends at the longest', () => {
  const policy = { free: 3, longestWaitMs: 6000, forgetOneMs: 1000 };
  const waits = [0, 1, 2, 3, 4, 5, 6, 7, 1000].map((failures) => waitAfter(failures, policy));
  assert.deepEqual(waits, [0, 0, 0, 1000, 2000, 4000, 6000, 6000, 6000]);
});

test('S07 failures are forgotten one by one, however often a client tries meanwhile', () => {
  const policy = { free: 3, longestWaitMs: 6000, forgetOneMs: 60_000 };
  const owed = drain(5 * policy.forgetOneMs, 0);
  assert.equal(failuresOf(owed, policy), 5);
  assert.equal(failuresOf(drain(owed, 60_000), policy), 4);
  let debtMs = owed;
  for (let second = 0; second < 120; second += 1) debtMs = drain(debtMs, 1000);
  assert.equal(failuresOf(debtMs, policy), 3);
  assert.equal(failuresOf(drain(debtMs, 10 * 60_000), policy), 0);
  assert.equal(drain(owed, -3_600_000), owed, 'a clock set back forgets nothing and adds nothing');
});

test('S07 all of an IPv6 /64 is one guesser, and no two IPv4 addresses are', () => {
  const keysOf = (address: string) =>
    attemptSubjects({ kind: 'password', account: 'ada', address }).map(({ key }) => key);
  assert.deepEqual(keysOf('2001:db8::1'), keysOf('2001:db8::ffff:1:2:3'));
  assert.notDeepEqual(keysOf('2001:db8::1'), keysOf('2001:db8:0:1::1'));
  assert.notEqual(keysOf('192.0.2.1')[2], keysOf('192.0.2.2')[2]);
});

const passwords: [password: string, isTaken: boolean][] = [
  ['correct horse battery', true],
  ['короткий пароль', true],
  ['123456789', false],
  ['aaaaaaaaaaaa', false],
  ['abababababab', false],
  ['ada-lovelace', false],
  ['ada-lovelace-and-more', true],
  ['x'.repeat(300), false],
];
for (const [password, isTaken] of passwords)
  test(`the password "${password.slice(0, 24)}" of ada-lovelace is ${isTaken ? 'taken' : 'refused'}`, () => {
    const check = () => checkNewPassword(password, { login: 'ada-lovelace' });
    if (isTaken) check();
    else assert.throws(check, (error: Failure) => error.code === 'invalid' && error.details.field === 'password');
  });

// RFC 6238 appendix B, SHA-1, the last six of its eight digits.
const vectors: [seconds: number, digits: string][] = [
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
];
for (const [seconds, digits] of vectors)
  test(`RFC 6238 appendix B: at ${seconds} s the digits are ${digits}`, () => {
    const seed = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';
    const step = Math.floor(seconds / 30);
    assert.equal(findTimeStep(seed, digits, seconds * 1000), step);
    assert.equal(findTimeStep(seed, `${digits.slice(0, 3)} ${digits.slice(3)}`, (seconds + 30) * 1000), step);
    assert.equal(findTimeStep(seed, digits, (seconds + 90) * 1000), undefined);
    assert.equal(findTimeStep(seed, 'abcdef', seconds * 1000), undefined);
  });

test('a seed has 160 bits, a recovery code 80, and each is another', () => {
  const seed = createTotpSeed(realWorld);
  assert.match(seed, /^[A-Z2-7]{32}$/);
  assert.notEqual(createTotpSeed(realWorld), seed);
  assert.match(
    formatTotpUri(seed, { issuer: 'Trivet', login: 'ada' }),
    /^otpauth:\/\/totp\/Trivet:ada\?issuer=Trivet&secret=/,
  );
  const codes = createRecoveryCodes(realWorld);
  assert.equal(new Set(codes).size, 10);
  for (const code of codes) assert.match(code, /^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$/);
});
