/** Runs `trivet config`: prints the settings in effect and where each comes from. */
import { Command } from 'commander';
import { formatTable, print, printJson } from '../command-line/output.ts';
import { explainConfig, readConfig } from '../config/config.ts';

interface ConfigOptions {
  readonly all?: true;
  readonly json?: true;
}

export function createConfigCommand(): Command {
  return new Command('config')
    .description('Show the settings in effect here and where they come from; secrets are masked')
    .option('--all', 'also settings with their default')
    .option('--json', 'one JSON object a line, of every setting')
    .action(showConfig);
}

function showConfig({ all, json }: ConfigOptions): void {
  const settings = explainConfig();
  if (json) for (const setting of settings) printJson({ ...setting, value: setting.value ?? null });
  else {
    const shown = settings.filter(({ source }) => all || source !== 'default');
    const rows = shown.map(({ name, value, source }) => [name, value, source]);
    print(formatTable(['setting', 'value', 'from'], rows));
  }
  // Throws if the settings are invalid.
  readConfig();
}
