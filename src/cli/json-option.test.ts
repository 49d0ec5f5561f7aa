/** Every command that prints a result can print it as JSON, and all commands that can use a service have the same options for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command } from 'commander';
import { loadCommands } from './commands.ts';

/** Commands without a result, and why. */
const WITHOUT_JSON: Readonly<Record<string, string>> = {
  serve: 'it runs until it is stopped, and its log has a format of its own (LOG_FORMAT)',
  demo: 'it tells a story to a person',
  'git-hook post-receive': 'git shows its output to the person who pushes',
  completion: 'its result is a script for a shell',
};

/** Commands that work here only, and why. */
const WITHOUT_SERVICE: Readonly<Record<string, string>> = {
  login: 'it takes the address of the service as its argument',
  logout: 'it takes the address of the service as its argument',
  'model train': 'it learns from files on this machine',
  'model capacity': 'it computes here',
  predict: 'it computes here; gRPC and HTTP answer over the network',
  observe: 'it reads files on this machine; gRPC, HTTP and OTLP take reports over the network',
  simulate: 'it computes here',
  listen: 'it is a receiver',
  doctor: 'it looks at this machine',
  config: 'it shows the settings of this machine',
  'vault reseal': 'it needs the keys, which never leave the machine of the service',
  backup: 'it copies a file of this machine',
  migrate: 'it copies databases while no service runs',
};

interface Leaf {
  readonly path: string;
  readonly options: readonly string[];
}

function listLeaves(path: string, command: Command): Leaf[] {
  const here = `${path} ${command.name()}`.trim();
  if (command.commands.length > 0) return command.commands.flatMap((child) => listLeaves(here, child));
  return [{ path: here, options: command.options.flatMap(({ short, long }) => [short ?? '', long ?? '']) }];
}

const leaves = (await loadCommands(undefined)).flatMap((command) => listLeaves('', command));
const listWithout = (option: string) => leaves.filter(({ options }) => !options.includes(option));

test('every command takes --json, but those that print no result', () => {
  assert.ok(leaves.length > 60, `${leaves.length} commands`);
  const paths = listWithout('--json').map(({ path }) => path);
  assert.deepEqual(paths, Object.keys(WITHOUT_JSON));
});

test('every command takes --service, but those that work here only', () => {
  const paths = listWithout('--service').map(({ path }) => path);
  assert.deepEqual(
    paths.filter((path) => WITHOUT_JSON[path] === undefined),
    Object.keys(WITHOUT_SERVICE),
  );
});

test('--url is the same as --service, but for webhooks, where it is the address of a receiver', () => {
  const onlyService = listWithout('--url').filter(({ options }) => options.includes('--service'));
  assert.deepEqual(onlyService, []);
  const receivers = leaves.filter(({ path }) => /^hook (create|update)$/.test(path));
  for (const { options } of receivers) assert.ok(options.includes('--url') && options.includes('--service'));
});
