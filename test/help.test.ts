/** The output of `--help` fits a terminal, and its commands can be typed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Command, Option } from 'commander';
import { loadCommands } from '../src/cli/commands.ts';
import { runTrivet } from './support/programs/run-trivet.ts';

interface ShownOption {
  readonly title: string;
  readonly option: Option;
}

function listOptions(command: Command, above = 'trivet'): ShownOption[] {
  const title = `${above} ${command.name()}`;
  const own = command.options.map((option) => ({ title: `${title} ${option.flags}`, option }));
  return [...own, ...command.commands.flatMap((child) => listOptions(child, title))];
}

/** Returns the text behind "default:" in the help of an option that takes a value. */
function showDefault({ defaultValue, defaultValueDescription }: Option): string {
  return defaultValueDescription ?? String(defaultValue);
}

test('a default in the help can be typed, and means the same', async () => {
  const options = (await loadCommands(undefined)).flatMap((command) => listOptions(command));
  const withDefault = options.filter(({ option }) => option.defaultValue !== undefined && !option.isBoolean());
  assert.ok(withDefault.length > 10);
  for (const { title, option } of withDefault) {
    const shown = showDefault(option);
    assert.notEqual(shown, '', `${title} shows an empty default`);
    const typed = option.variadic ? shown.split(' ') : (option.parseArg?.(shown, undefined) ?? shown);
    assert.equal(JSON.stringify(typed), JSON.stringify(option.defaultValue), `${title} (default: ${shown})`);
  }
});

function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)];
}

test('the help of every command fits 80 columns', async () => {
  for (const command of (await loadCommands(undefined)).flatMap(listCommands)) {
    const help = command.configureOutput({ getOutHelpWidth: () => 80 }).helpInformation();
    const wide = help.split('\n').filter((line) => line.length > 80 && !line.startsWith('Usage: '));
    assert.deepEqual(wide, [], command.name());
  }
});

test('the help of every command marks the options that are required', async () => {
  const commands = (await loadCommands(undefined)).flatMap(listCommands);
  const required = commands.flatMap((command) =>
    command.options
      .filter(({ mandatory }) => mandatory)
      .map((option) => ({ title: `${command.name()} ${option.flags}`, help: describe(command, option) })),
  );
  assert.ok(required.length > 20);
  for (const { title, help } of required) assert.match(help, /^\(required\) /, title);
  const capacity = commands.find((command) => command.name() === 'capacity')!;
  const [ttft, tpot, output] = ['--ttft', '--tpot', '--output-tokens'].map((long) =>
    describe(capacity, capacity.options.find((option) => option.long === long)!),
  );
  assert.match(ttft!, /this or --tpot is required/);
  assert.match(tpot!, /this or --ttft is required/);
  assert.equal(output, 'the mean length of an answer (default: that of the samples)');
  assert.doesNotMatch(capacity.helpInformation(), /--quantile[^-]*\(required\)/);
});

test('the help that a person sees marks the options that are required, once each', async () => {
  const { stdout } = await runTrivet(['hook', 'create', '--help']);
  const required = listOptionLines(stdout).filter((line) => line.includes('(required)'));
  assert.ok(required.length > 0);
  for (const line of required) assert.match(line, /^ +--\S+(, --\S+)?( <\S+>)? +\(required\) (?!.*\(required\))/);
});

/** The lines on which options begin. */
function listOptionLines(help: string): string[] {
  return help.split('\n').filter((line) => /^ +-/.test(line));
}

/** As the help of the command shows it. */
function describe(command: Command, option: Option): string {
  return command.createHelp().optionDescription(option);
}
