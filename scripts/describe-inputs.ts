import { readFileSync } from 'node:fs';
import { INPUT_FIELDS, type InputField } from '../src/prediction/schema/input-fields.ts';

const PAGE = 'docs/reference/prediction-api.md';
const PART =
  /(<!-- generated from src\/prediction\/schema\/input-fields\.ts .*? -->\n).*?(<!-- end of the generated part -->)/s;

/** Returns the page with its table of input fields generated again. */
export function describeInputs(): string {
  const page = readFileSync(PAGE, 'utf8');
  if (!PART.test(page)) throw new Error(`${PAGE} lacks the comments around the table of input fields`);
  const rows = INPUT_FIELDS.map(({ name, meaning, unit }) => `| \`${name}\` | ${meaning} | ${UNITS[unit]} |\n`);
  const table = `| field | meaning | unit, recommended range |\n|---|---|---|\n${rows.join('')}`;
  return page.replace(PART, (_, start: string, end: string) => `${start}${table}${end}`);
}

const UNITS: Readonly<Record<InputField['unit'], string>> = {
  any: 'any',
  text: 'text',
  tokens: 'tokens',
  count: 'count',
  share: '0–1',
};
