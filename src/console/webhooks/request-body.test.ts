import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { startReceiver } from '../../../test/support/network/receiver.ts';
import type { DeliveryDetail } from './hook-views.ts';
import { writeCurl } from './request-body.ts';

test('writeCurl() sends the same bytes and headers, whatever quotes they have', async () => {
  await using receiver = await startReceiver();
  const body = `{"title":"it's $(id) \`id\` \\"quoted\\" \\\\","text":"你好"}`;
  const headers = { 'Content-Type': 'application/json', 'X-Odd': "it's", 'X-GitCode-Token': '[redacted]' };
  const delivery = { request_body: body, attempt_log: [{ request_headers: headers }] } as unknown as DeliveryDetail;
  execFileSync('sh', ['-c', `${writeCurl(delivery, `${receiver.url}?a='b'`)} --silent --noproxy '*' &`], {
    stdio: 'ignore',
  });
  await receiver.waitFor(1);
  const [request] = receiver.received;
  assert.equal(request?.body.toString(), body);
  assert.equal(request?.headers['x-odd'], "it's");
  assert.equal(request?.headers['x-gitcode-token'], undefined);
});
