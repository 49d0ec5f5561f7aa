import { toSnakeCase } from '../src/config/config.ts';
import type { Setting } from '../src/config/setting.ts';
import { settings } from '../src/config/settings.ts';

const HEAD = `# Configuration

Generated from \`src/config/settings.ts\` by \`npm run generate\`.

Each setting is an environment variable, or an entry of \`trivet.toml\` or \`trivet.json\` in the working folder (another
file: \`TRIVET_CONFIG\`). A variable wins over the file, the file over the default. A list is comma-separated in a variable
and an array in a file. All mistakes are reported at once, each under its own name, and nothing starts. A variable whose name looks
like a misspelt setting is ignored, with a warning in the log.

\`\`\`toml
# trivet.toml: the headings below are its tables
[server]
http_port = 8090
grpc_port = 50061

[webhooks]
allow_cidrs = ["10.1.0.0/16"]
\`\`\`

\`trivet config\` shows the settings in effect, and where each comes from.
`;

export function describeConfiguration(): string {
  const sections = Object.entries(settings).map(([name, definitions]) => describeSection(name, definitions));
  return `${HEAD}\n${sections.join('\n')}`;
}

function describeSection(section: string, definitions: object): string {
  const rows = Object.entries(definitions as Record<string, Setting<unknown>>).map(
    ([name, setting]) =>
      `| \`${setting.env}\` | \`${toSnakeCase(name)}\` | ${describeFallback(setting)} | ${escapeCell(setting.about)} |`,
  );
  return `## \`[${section}]\`\n\n| variable | in a file | default | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`;
}

function describeFallback(setting: Setting<unknown>): string {
  return setting.fallback === undefined || setting.fallback === '' ? '' : `\`${setting.fallback}\``;
}

function escapeCell(text: string): string {
  return text.replaceAll('|', '\\|');
}
