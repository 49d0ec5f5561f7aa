import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from '@hono/zod-openapi';
import { callOnStore } from './call-on-store.ts';
import { COMMAND_LINE, describeOperation, implement } from './operation.ts';

const change = describeOperation({
  name: 'changeThing',
  method: 'put',
  path: '/things/{id}',
  tag: 'Things',
  summary: 'Change a thing',
  scope: 'admin:people',
  input: z.object({ id: z.string(), isOld: z.boolean().default(false) }),
  output: z.object({ isOld: z.boolean() }),
});
const implementations = [implement(change, async ({ isOld }) => ({ isOld }))];

test('callOnStore() refuses a field that the operation does not have, and names it', async () => {
  const call = (input: object) =>
    callOnStore(implementations, change, { input: input as never, actor: COMMAND_LINE, file: new Uint8Array() });
  await assert.rejects(call({ id: 'a', is_old: true }), {
    code: 'invalid',
    message: 'Cannot read the request: "is_old" is no field here, allowed: id, isOld',
    details: { field: 'is_old' },
  });
  assert.deepEqual(await call({ id: 'a', is_old: undefined }), { isOld: false });
});
