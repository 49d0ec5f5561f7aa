/**
 * Writes the files that are made from the code: `docs/reference/configuration.md` from the settings, `docs/reference/openapi.json`
 * from the routes, `docs/reference/events.md` from the golden bodies of deliveries, the table of inputs in
 * `docs/reference/prediction-api.md` from the input fields, the programs of the event catalogue's page from
 * `docs/how-to/verify-deliveries.md`, the pages of source files in `docs/how-it-works/files`, and the types of the API for its test.
 * With `--check` it writes nothing, and fails when a file differs.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describeApiTypes } from './describe-api-types.ts';
import { describeConfiguration } from './describe-configuration.ts';
import { describeEvents } from './describe-events.ts';
import { describeFiles } from './describe-files.ts';
import { describeInputs } from './describe-inputs.ts';
import { describeVerification } from './describe-verification.ts';
import { readOpenApi } from './read-openapi.ts';

const isCheck = process.argv.includes('--check');
const openApi = await readOpenApi();
const generated: Readonly<Record<string, string>> = {
  ...describeFiles(),
  'docs/reference/configuration.md': describeConfiguration(),
  'docs/reference/events.md': describeEvents(),
  'docs/reference/openapi.json': openApi,
  'docs/reference/prediction-api.md': describeInputs(),
  'src/api-reference/verification-programs.json': describeVerification(),
  'test/reference/openapi-types.ts': describeApiTypes(openApi),
};

const stale = Object.entries(generated).filter(
  ([path, content]) => !existsSync(path) || readFileSync(path, 'utf8') !== content,
);
for (const [path, content] of stale) {
  if (isCheck) process.stderr.write(`${path} is not what the code generates; run: npm run generate\n`);
  else writeFileSync(path, content);
}
process.exitCode = isCheck && stale.length > 0 ? 1 : 0;
