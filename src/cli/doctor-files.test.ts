/** `trivet doctor` examines the files, the unix socket and the disk that a start needs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createCertificate } from '../../test/support/basics/certificate.ts';
import { findFreePort } from '../../test/support/basics/free-port.ts';
import { mountSmallDisk } from '../../test/support/basics/small-disk.ts';
import { examineInstallation } from '../../test/support/programs/examine-installation.ts';
import { startProgram } from '../../test/support/programs/start-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivet-doctor-'));
after(() => rmSync(folder, { recursive: true }));

const examine = (env: Readonly<Record<string, string>>, dataDir = join(folder, 'data')) =>
  examineInstallation(env, dataDir);

test('each file that would keep the service from starting is found, for the parts that read it', async () => {
  const missing = join(folder, 'missing');
  const cases: [name: string, part: string, env: Record<string, string>, refusal: RegExp][] = [
    ['authorities', 'webhooks', { WEBHOOK_CA_FILE: missing }, /WEBHOOK_CA_FILE ".*" cannot be used: ENOENT/],
    [
      'scraped servers',
      'prediction',
      { PREDICTION_SCRAPE: missing },
      /PREDICTION_SCRAPE: the file ".*" must be readable/,
    ],
    ['unix socket', 'prediction', { GRPC_UNIX_SOCKET: join(missing, 'socket') }, /cannot be opened: .*(ENOENT|EACCES)/],
  ];
  for (const [name, part, env, refusal] of cases) {
    const found = await examine({ PARTS: part, ...env });
    assert.deepEqual([found.code, found.find(name)?.state], [1, 'fail'], found.stdout);
    assert.match(found.find(name)?.found ?? '', refusal);
    await assert.rejects(startProgram({ PARTS: part, ...env }), /ended before it was ready/);
  }
  const others = await examine({ PARTS: 'authorization', WEBHOOK_CA_FILE: missing, PREDICTION_SCRAPE: missing });
  assert.deepEqual([others.find('authorities'), others.find('scraped servers')], [undefined, undefined]);
});

test('files that the service can use pass', async () => {
  const list = join(folder, 'servers');
  writeFileSync(list, 'http://10.0.0.5:8000/metrics\n# one more\ngpu-b=http://10.0.0.6:8000/metrics\n');
  const { find } = await examine({ WEBHOOK_CA_FILE: createCertificate().certFile, PREDICTION_SCRAPE: list });
  assert.equal(find('authorities')?.state, 'ok');
  assert.deepEqual(find('scraped servers'), {
    state: 'ok',
    name: 'scraped servers',
    found: 'PREDICTION_SCRAPE lists 2',
  });
});

test('a unix socket that is free, of another program, of a file or of a running service is recognized', async (t) => {
  const path = join(folder, 'grpc.sock');
  const examineSocket = async (dataDir?: string) =>
    (await examine({ GRPC_UNIX_SOCKET: path }, dataDir)).find('unix socket');
  assert.equal((await examineSocket())?.state, 'ok');
  assert.equal(existsSync(path), false);
  writeFileSync(path, 'text');
  assert.match((await examineSocket())?.found ?? '', /a file that is not a socket has this name/);
  rmSync(path);
  const stranger = createHttpServer().listen(path);
  await once(stranger, 'listening');
  t.after(() => stranger.close());
  assert.match((await examineSocket())?.found ?? '', /another program does/);
  stranger.close();
  await using program = await startProgram({ PREDICTION_LEARNING: 'off', GRPC_UNIX_SOCKET: path });
  assert.match((await examineSocket(program.dataDir))?.found ?? '', /in use, and a Trivet service runs here/);
});

test('the disk of a data folder is examined only where the service stores something there', async (t) => {
  const dataDir = join(folder, 'small');
  mkdirSync(dataDir);
  using disk = mountSmallDisk(t, dataDir, 4);
  if (disk === undefined) return;
  assert.equal((await examine({}, dataDir)).find('disk')?.state, 'fail');
  const elsewhere = { DATABASE_URL: `postgres://u:p@127.0.0.1:${await findFreePort()}/none` };
  assert.equal((await examine(elsewhere, dataDir)).find('disk'), undefined);
});
