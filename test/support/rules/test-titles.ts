/** Says what is wrong with the title of a test: it is a sentence that states what holds, in lower case, with a capital for a name. */

/** Programs, formats, headers and methods that a title may begin with. */
export const NAMES: readonly string[] = [
  'Authlib',
  'Basic',
  'Debian',
  'GuideLLM',
  'LightGBM',
  'OpenID Connect',
  'OpenShift',
  'Parquet',
  'PostgreSQL',
  'Predict',
  'Retry-After',
  'ServerClock',
];

const RULES: [fault: string, isBroken: (title: string) => boolean][] = [
  ['begins with "should", "test" or "it"', (title) => /^(should|tests?|it)(?![\w/-])/i.test(title)],
  ['begins with a capital', (title) => /^[A-Z][a-z]/.test(title) && !NAMES.some((name) => beginsWith(title, name))],
  ['ends with a full stop', (title) => title.endsWith('.')],
];

export function findTitleFaults(title: string): readonly string[] {
  return RULES.filter(([, isBroken]) => isBroken(title)).map(([fault]) => `"${title}" ${fault}`);
}

export function beginsWith(title: string, name: string): boolean {
  return title.startsWith(name) && !/^[\w-]/.test(title.slice(name.length));
}
