import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startRawReceiver } from '../../../../test/support/network/raw-receiver.ts';
import { answerWith, deliveryTo, OK, openSender } from '../../../../test/support/webhooks/test-sender.ts';

const PROGRAM = 'test/support/webhooks/send-with-few-files.ts';

test('with too many connections the oldest idle one is closed of the owner that has most', async () => {
  await using receivers = new AsyncDisposableStack();
  const start = async () => receivers.use(await startRawReceiver(answerWith(OK)));
  const [rare, ...many] = [await start(), await start(), await start(), await start(), await start()] as const;
  await using sender = openSender({ maxConnections: 4 });
  const send = async (ownerId: string, url: string) => {
    assert.equal((await sender.send({ ...deliveryTo(url), ownerId })).status, 200);
    sender.letRest();
  };
  await send('one', rare.url);
  for (const { url } of many) await send('other', url);
  assert.equal(sender.connections, 4);
  await send('one', rare.url);
  assert.equal(rare.connections, 1, 'the connection of the owner that has fewer is kept');
  for (const { url } of many.slice(1)) await send('other', url);
  assert.deepEqual(
    many.map(({ connections }) => connections),
    [1, 1, 1, 1],
    'the newer ones of the owner that has most are kept',
  );
  await send('other', many[0]!.url);
  assert.deepEqual([many[0]!.connections, sender.connections], [2, 4]);
});

test('a connection in use is not closed, however many there are', async () => {
  const requests = Promise.withResolvers<void>();
  const answers: (() => void)[] = [];
  await using receiver = await startRawReceiver((socket) => {
    socket.once('data', () => {
      answers.push(() => socket.write(OK));
      if (answers.length === 3) requests.resolve();
    });
  });
  await using sender = openSender({ maxConnections: 1 });
  const sent = [1, 2, 3].map(() => sender.send(deliveryTo(receiver.url)));
  await requests.promise;
  for (const answer of answers) answer();
  const statuses = (await Promise.all(sent)).map(({ status }) => status);
  assert.deepEqual([...statuses, sender.connections], [200, 200, 200, 1]);
});

test('connections take an eighth of the open files, and an attempt without a free one is no failure of its origin', async () => {
  await using receiver = await startRawReceiver(answerWith(OK), '0.0.0.0');
  const command = `ulimit -n 100 && exec "$0" ${PROGRAM} ${receiver.port}`;
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath]);
  assert.deepEqual(JSON.parse(stdout), {
    kept: 12,
    outcomes: [
      { kind: 'unreachable', reason: 'no free socket', stage: 'before-connect' },
      { kind: 'unreachable', reason: 'name resolution failed', stage: 'before-connect' },
    ],
  });
});
