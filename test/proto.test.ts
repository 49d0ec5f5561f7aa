import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Field } from 'protobufjs';
import { messageType } from './support/grpc/proto-messages.ts';
import { CONTRACT_MESSAGES } from './support/rules/contract-messages.ts';

function describe(field: Field): string {
  const name = field.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return `${field.id} ${name} ${field.repeated ? 'repeated ' : ''}${field.type}`;
}

for (const [name, fields] of Object.entries(CONTRACT_MESSAGES))
  test(`prediction.v1.${name} has the fields of the published interface and no others`, () => {
    const type = messageType(`prediction.v1.${name}`);
    assert.deepEqual(type.fieldsArray.toSorted((left, right) => left.id - right.id).map(describe), fields);
  });

test('the proto files pass buf lint', () => {
  execFileSync('node_modules/.bin/buf', ['lint'], { stdio: 'pipe' });
});

test('the proto files are formatted as buf formats them', () => {
  const own = ['hermes', 'observation', 'prediction'].flatMap((name) => ['--path', `proto/${name}`]);
  execFileSync('node_modules/.bin/buf', ['format', '--diff', '--exit-code', ...own], { stdio: 'pipe' });
});

test('the compiled descriptors are those of the proto files: run "npm run proto" after a change', () => {
  const built = execFileSync('node_modules/.bin/buf', ['build', '--exclude-source-info', '-o', '-#format=binpb']);
  assert.ok(built.equals(readFileSync('src/gen/descriptors.binpb')));
});
