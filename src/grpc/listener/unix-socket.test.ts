import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { connectRaw } from '../../../test/support/grpc-client.ts';
import { ECHO_PATH, HELLO, startGrpcServer, unary } from '../../../test/support/grpc-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-grpc-'));
after(() => rmSync(folder, { recursive: true }));

test('a unix socket is served too, taken over when stale, refused when alive', async () => {
  const unixSocket = join(folder, 'grpc.sock');
  const method = unary((_request, call) => Buffer.from(`${call.isLoopback} ${call.peerAddress}`));
  writeFileSync(unixSocket, '');
  {
    await using _running = await startGrpcServer([method], { unixSocket });
    using client = connectRaw(`unix:${unixSocket}`);
    assert.equal(String(await client.unary(ECHO_PATH, HELLO)), 'true undefined');
    await assert.rejects(startGrpcServer([method], { unixSocket }), /another program does/);
  }
  assert.equal(existsSync(unixSocket), false);
});
