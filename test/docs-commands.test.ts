/** Commands that the documentation shows exist, with their options. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Command } from 'commander';
import { loadCommands } from '../src/cli/commands.ts';
import { listPages } from './support/rules/pages.ts';

const FILES = listPages();

/** The words of each `trivet …` in the shell blocks of a page, up to what the shell does with it. */
function listCalls(file: string): string[][] {
  const blocks = readFileSync(file, 'utf8').matchAll(/```(?:sh|bash|console)\n([\s\S]*?)```/g);
  const lines = [...blocks].flatMap(([, block = '']) => block.replaceAll('\\\n', ' ').split('\n'));
  const plain = lines.map((line) => line.replaceAll(/"[^"]*"|'[^']*'/g, 'text'));
  const calls = plain.flatMap((line) => /(?:^|[|;&(] *|npx )trivet ([a-z][^|;&>#)]*)/.exec(line)?.[1] ?? []);
  return calls.map((call) => call.trim().split(/\s+/));
}

function findCommand(commands: readonly Command[], words: readonly string[]): Command | undefined {
  const command = commands.find((candidate) => candidate.name() === words[0]);
  return (command && findCommand(command.commands, words.slice(1))) ?? command;
}

test('commands in the documentation exist, and so do their options', async () => {
  const commands = await loadCommands(undefined);
  let count = 0;
  for (const file of FILES)
    for (const words of listCalls(file)) {
      const shown = `${file}: trivet ${words.join(' ')}`;
      const command = findCommand(commands, words);
      assert.ok(command && (command.commands.length === 0 || words.includes('--help')), shown);
      const options = new Set(['--help', ...command.options.flatMap(({ short, long }) => [short, long])]);
      for (const word of words.filter((candidate) => candidate.startsWith('--')))
        assert.ok(options.has(word.split('=')[0]), `${shown}: ${word}`);
      count++;
    }
  assert.ok(count >= 20, `only ${count} commands were found`);
});

/** The bench and the options of each `node bench/…`, in a block or in a sentence. */
function listBenchCalls(
  text: string,
): { readonly shown: string; readonly bench: string; readonly options: string[] }[] {
  const calls = text.replaceAll('\\\n', ' ').matchAll(/\bnode (bench\/[\w/-]+\.ts)([^`\n|;&)#]*)/g);
  return [...calls].map(([shown, bench = '', rest = '']) => ({
    shown,
    bench,
    options: rest
      .replaceAll(/"[^"]*"|'[^']*'/g, 'text')
      .split(/\s+/)
      .filter((word) => word.startsWith('--'))
      .map((word) => word.slice(2).replace(/=.*/, '')),
  }));
}

function readBenchOptions(bench: string): ReadonlySet<string> {
  const [, options = ''] = /readBenchFlags\(\{([\s\S]*?)\n\}\)/.exec(readFileSync(bench, 'utf8')) ?? [];
  return new Set(['help', ...[...options.matchAll(/^ *'?([\w-]+)'?: \{ type: /gm)].map(([, name = '']) => name)]);
}

test('benches in the documentation exist, and so do their options', () => {
  const calls = FILES.flatMap((file) =>
    listBenchCalls(readFileSync(file, 'utf8')).map((call) => ({ ...call, place: `${file}: ${call.shown}` })),
  );
  const unknown = calls.flatMap(({ place, bench, options }) =>
    options.filter((option) => !readBenchOptions(bench).has(option)).map((option) => `${place}: --${option}`),
  );
  assert.deepEqual(unknown, []);
  for (const { place, bench } of calls) assert.ok(existsSync(bench), place);
  assert.ok(calls.filter(({ options }) => options.length > 0).length >= 10);
});
