import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameByLabel } from './field-labels.ts';

test('nameByLabel() puts the label of a field where a refusal names the field', () => {
  const labels = { redirect_uri: 'Redirect addresses', name: '名称', url: 'Address' };
  for (const [message, named] of [
    [
      'Cannot save the application: redirect_uri must be one',
      'Cannot save the application: “Redirect addresses” must be one',
    ],
    ['url must not be blank, got "url must"', '“Address” must not be blank, got "url must"'],
    ['name 不能为空。', '“名称”不能为空。'],
    ['name must be text', '“名称” must be text'],
  ] as const)
    assert.equal(nameByLabel(message, labels), named);
});

test('nameByLabel() leaves a refusal alone that names no field of the form', () => {
  for (const message of [
    'Cannot save the application: description must be short',
    'Cannot use this url: it must be http',
    'Cannot find "a: name must be": name it otherwise',
    'toString must be text',
    '',
  ])
    assert.equal(nameByLabel(message, { name: 'Name', url: 'Address' }), message);
});
