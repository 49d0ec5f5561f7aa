import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskPasswords } from './mask-passwords.ts';

const texts: [text: string, shown: string][] = [
  ['https://ada:hunter2@collector:4318/v1', 'https://ada:********@collector:4318/v1'],
  ['https://:hunter2@collector', 'https://:********@collector'],
  ['https://ada:hunter@2@collector', 'https://ada:********@collector'],
  ['https://ada:hun/ter#2@collector', 'https://ada:********@collector'],
  ['https://a.example:80,https://ada:hunter2@b.example', 'https://a.example:********@b.example'],
  ['["https://ada:hunter2@b.example"]', '["https://ada:********@b.example"]'],
  ['https://collector:4318/@team/a', 'https://collector:4318/@team/a'],
  ['ada@mail.example', 'ada@mail.example'],
];
for (const [text, shown] of texts)
  test(`maskPasswords() shows ${text} as ${shown}`, () => assert.equal(maskPasswords(text), shown));
