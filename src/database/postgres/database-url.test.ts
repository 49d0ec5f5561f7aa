import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DatabaseUrl, parseDatabaseUrl } from './database-url.ts';

const local = (port: number) => ({ host: '10.0.0.1', port });
const CASES: [title: string, url: string, expected: Partial<DatabaseUrl>][] = [
  [
    'leaves one host to the driver',
    'postgres://u:p%40@db/trivet?sslmode=require',
    { connectionString: 'postgres://u:p%40@db/trivet?sslmode=require', hosts: [], isPrepared: true },
  ],
  [
    'leaves a socket to the driver',
    'postgres://u@/db?host=%2Frun',
    { connectionString: 'postgres://u@/db?host=%2Frun' },
  ],
  [
    'lists several hosts and gives the driver the first',
    'postgresql://u:p%2C@10.0.0.1:5433,[::1],two.example:6000/trivet?sslmode=require',
    {
      connectionString: 'postgresql://u:p%2C@10.0.0.1:5433/trivet?sslmode=require',
      hosts: [local(5433), { host: '::1', port: 5432 }, { host: 'two.example', port: 6000 }],
    },
  ],
  [
    'looks for the primary behind one name when asked to',
    'postgres://10.0.0.1/trivet?target_session_attrs=read-write',
    { connectionString: 'postgres://10.0.0.1/trivet', hosts: [local(5432)] },
  ],
  [
    'prepares no statements when asked to',
    'postgres://u@10.0.0.1/trivet?prepared_statements=false&sslmode=require',
    { connectionString: 'postgres://u@10.0.0.1/trivet?sslmode=require', hosts: [], isPrepared: false },
  ],
];
for (const [title, url, expected] of CASES)
  test(`parseDatabaseUrl() ${title}`, () => {
    const parsed = parseDatabaseUrl(url);
    assert.deepEqual({ ...parsed, ...expected }, parsed);
  });

const REFUSED: [url: string, reason: string][] = [
  ['postgres://u:geheim@a,b/x?target_session_attrs=any', 'target_session_attrs must be read-write or primary'],
  ['postgres://u:geheim@a/x?prepared_statements=no', 'prepared_statements must be true or false'],
  ['postgres://u:geheim@a,/x', 'each of several hosts must be a name or an address, and a port if need be'],
  ['postgres://u:geheim@a,b:port/x', 'each of several hosts must be a name or an address, and a port if need be'],
  ['postgres:///x?host=a,b', 'several hosts must be written as postgres://user@one:5432,two:5432/database'],
];
for (const [url, reason] of REFUSED)
  test(`parseDatabaseUrl() refuses ${url.replace('u:geheim@', '')}`, () =>
    assert.throws(() => parseDatabaseUrl(url), { code: 'invalid', message: `Cannot read DATABASE_URL: ${reason}` }));
