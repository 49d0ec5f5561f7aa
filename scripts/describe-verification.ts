import { readFileSync } from 'node:fs';

/** Matches a heading such as `Python:`, an optional comment for the tests, and the program. */
const PROGRAM = /^(\S[^\n]*):\n\n(?:<!--[^\n]*-->\n)?```(\w+)\n([\s\S]*?)```/gm;

/** Writes `src/api-reference/verification-programs.json`: the programs of docs/how-to/verify-deliveries.md, which the tests run. */
export function describeVerification(): string {
  const page = readFileSync('docs/how-to/verify-deliveries.md', 'utf8');
  const [before = ''] = page.split('\nA genuine sample');
  const programs = [...before.matchAll(PROGRAM)].map(([, name, language, code]) => ({ name, language, code }));
  const [, standard] = /## With `webhook-signature`[\s\S]*?```js\n([\s\S]*?)```/.exec(page) ?? [];
  if (programs.length !== 6 || standard === undefined)
    throw new Error('docs/how-to/verify-deliveries.md must have six programs and one for webhook-signature');
  return `${JSON.stringify({ programs, standard }, null, 2)}\n`;
}
