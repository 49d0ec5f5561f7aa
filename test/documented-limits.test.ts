/** The limits of files, reports and owners that the documentation names are those of the readers. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { MAX_SESSIONS } from '../src/authorization/accounts/session-store.ts';
import { MAX_APPLICATIONS } from '../src/authorization/applications/application-store.ts';
import { MAX_PERSONAL_TOKENS } from '../src/authorization/tokens/personal-token-store.ts';
import { ACCESS_TOKENS_KEPT, MAX_FAMILIES, MAX_OWN_TOKENS } from '../src/authorization/tokens/surplus-tokens-store.ts';
import { parseConfig } from '../src/config/config.ts';
import { MAX_FILE_BYTES } from '../src/prediction/commands/model-import.ts';
import { MAX_COLUMNS } from '../src/prediction/formats/csv.ts';
import { MAX_LINE_LENGTH } from '../src/prediction/formats/lines.ts';
import { PARQUET_LIMITS } from '../src/prediction/formats/parquet-check.ts';
import { MAX_TREES } from '../src/prediction/gbdt/forest-format.ts';
import { GENERAL_LIMITS } from '../src/prediction/gbdt/general/general-tree.ts';
import { MAX_POD_TYPE_MODELS } from '../src/prediction/model/model-header.ts';
import { MAX_NAME_BYTES } from '../src/prediction/observations/event-draft.ts';
import { MAX_EVENTS } from '../src/prediction/observations/event-queue.ts';
import { MAX_COUNT } from '../src/prediction/schema/input-fields.ts';
import { MAX_MS, MIN_OBSERVED_MS } from '../src/prediction/schema/milliseconds.ts';
import { MAX_HOOKS } from '../src/webhooks/management/manage-hook.ts';

const MEBIBYTE = 1_048_576;
const mebibytes = (bytes: number): string => `${bytes / MEBIBYTE} MiB`;
const number = (value: number): string => value.toLocaleString('en');
const { trees, nodes, features, depth } = GENERAL_LIMITS;

const rows: readonly (readonly [file: string, row: string])[] = [
  ['reference/prediction-files.md', `| a line of JSON or CSV | ${mebibytes(MAX_LINE_LENGTH)} |`],
  ['reference/prediction-files.md', `| columns of CSV and Parquet | ${number(MAX_COLUMNS)} |`],
  ['reference/prediction-files.md', `| rows of a Parquet row group | ${number(PARQUET_LIMITS.groupRows)},`],
  [
    'reference/prediction-files.md',
    `| a Parquet page, once expanded; a Parquet footer | ${mebibytes(PARQUET_LIMITS.pageBytes)} |`,
  ],
  [
    'reference/prediction-files.md',
    `| all of a Parquet file, once expanded | ${number(PARQUET_LIMITS.expansion)} times its size and ${mebibytes(PARQUET_LIMITS.freeBytes)};`,
  ],
  ['reference/prediction-files.md', `| tokens and requests in a row | ${number(MAX_COUNT)} |`],
  ['reference/prediction-files.md', `| TTFT and TPOT, reported or in a file | ${MIN_OBSERVED_MS} ms to one day |`],
  ['reference/prediction-files.md', `| texts of a reported event | ${MAX_NAME_BYTES} bytes each |`],
  ['reference/prediction-files.md', `| a model file | ${number(MAX_FILE_BYTES)} bytes |`],
  [
    'reference/prediction-files.md',
    `| our own trees in an export | ${number(MAX_TREES)} in each forest, ${MAX_POD_TYPE_MODELS} pod types;`,
  ],
  [
    'reference/prediction-files.md',
    `| imported trees | ${number(trees)} trees, ${number(nodes)} nodes, ${number(features)} features, ${depth} levels;`,
  ],
  ['reference/oauth.md', `| personal access tokens that have not expired | ${MAX_PERSONAL_TOKENS} |`],
  ['reference/oauth.md', `| OAuth applications | ${MAX_APPLICATIONS} |`],
  ['reference/oauth.md', `| sessions (browsers in which the person is signed in) | ${MAX_SESSIONS} |`],
  ['reference/oauth.md', `| sign-ins of one person with one application | ${MAX_FAMILIES} |`],
  ['reference/oauth.md', `| tokens that an application got for itself | ${number(MAX_OWN_TOKENS)} |`],
  ['reference/oauth.md', `| access tokens of one sign-in | ${ACCESS_TOKENS_KEPT} |`],
  ['reference/webhook-api.md', `| webhooks of a repository | ${MAX_HOOKS} |`],
  [
    'reference/webhook-api.md',
    `| repositories of a person or an organization | ${number(parseConfig({}).webhooks.repositoriesPerOwner)} (`,
  ],
  ['reference/prediction-api.md', `| reported events that wait for their commit, of all reports | ${MAX_EVENTS} |`],
];

for (const [file, row] of rows)
  test(`docs/${file} has the row of the reader: ${row.split('|')[1]?.trim()}`, () => {
    const text = readFileSync(new URL(`../docs/${file}`, import.meta.url), 'utf8');
    assert.ok(text.includes(`\n${row}`), row);
  });

test('limits that share a row are the same', () => {
  assert.equal(PARQUET_LIMITS.columns, MAX_COLUMNS);
  assert.equal(PARQUET_LIMITS.footerBytes, PARQUET_LIMITS.pageBytes);
  assert.equal(MAX_MS, 86_400_000);
});
