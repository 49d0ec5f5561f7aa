/** Words that a stranger stumbles over, and what to write instead. Checked by `test/plain-english.test.ts`. */
export const WORDS_TO_AVOID: readonly (readonly [pattern: string, instead: string])[] = [
  ['nobody|somebody|whoever|whomever', 'name the person, the process or the caller'],
  ['can not', 'cannot'],
  ['(?:is|are|was|were) none', 'say what it is not, or "without …"'],
  ['(?:say|says|said|saying) so', 'say what is reported, and where'],
  ['looks? whether', 'checks whether'],
  ['hears?|heard|told', 'receives, is reported, is sent'],
  ['anew', 'again'],
  ['foresees?|foreseen|foresight|foresaw', 'predict, forecast'],
  ['nudges?|nudged|pokes?|poked|hasten\\w*|hurry|hurries', 'wake, request'],
  ['short[- ]way|long[- ]way', 'fast path, fallback'],
  ['as (?:\\w+ )+as may be', 'name the limit'],
  ["(?:do|does|did|is|are|was|were|has|have|had|wo|ca|should|would|could)n['’]t", 'write contractions out'],
];
