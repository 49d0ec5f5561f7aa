import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameByLabel } from './field-labels.ts';

test('nameByLabel() puts the label of a field where a refusal names the field', () => {
  const labels = { redirect_uri: 'Redirect addresses', name: '名称', url: 'Address', ttft_ms: 'TTFT', tpot_ms: 'TPOT' };
  for (const [message, named] of [
    [
      'Cannot save the application: redirect_uri must be one',
      'Cannot save the application: “Redirect addresses” must be one',
    ],
    ['url must not be blank, got "url must"', '“Address” must not be blank, got "url must"'],
    ['name 不能为空。', '“名称”不能为空。'],
    ['name must be text', '“名称” must be text'],
    ['Cannot use this url: it must be http or https, got "ftp"', '“Address” must be http or https, got "ftp"'],
    ['Cannot find it: ttft_ms, tpot_ms or both must be given', 'Cannot find it: “TTFT”, “TPOT” or both must be given'],
    ['无法计算：ttft_ms 和 tpot_ms 至少填写一个。', '无法计算：“TTFT”和“TPOT”至少填写一个。'],
    ['name must not be "ttft_ms" or tpot_ms', '“名称” must not be "ttft_ms" or “TPOT”'],
  ] as const)
    assert.equal(nameByLabel(message, labels), named);
});

test('nameByLabel() leaves a refusal alone that names no field of the form', () => {
  for (const message of [
    'Cannot save the application: description must be short',
    'Cannot use this port: it must be 80',
    'Cannot find it: ttft_ms or tpot_ms must be given',
    'Cannot find "a: name must be": name it otherwise',
    'toString must be text',
    '',
  ])
    assert.equal(nameByLabel(message, { name: 'Name', url: 'Address' }), message);
});
