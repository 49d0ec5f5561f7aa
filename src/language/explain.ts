/**
 * Refusals of a rule are English, since the API, the log and the command line show them too. Pages in another language
 * have a phrase for each that a person can meet; one without a phrase stays English.
 */

/** A message with `{}` for each part that changes, and its translation with `{1}`, `{2}`, … for them. */
export type Phrase = readonly [english: string, translated: string];

export function createExplainer(phrases: readonly Phrase[]): (message: string) => string {
  const compiled = phrases.map(([english, translated]) => ({ pattern: compile(english), translated }));
  return (message) => {
    for (const { pattern, translated } of compiled) {
      const match = pattern.exec(message);
      if (match !== null) return translated.replace(/\{(\d)\}/g, (_, index: string) => match[Number(index)] ?? '');
    }
    return message;
  };
}

/**
 * With or without what was given instead, and the full stop that a page puts behind it. Bounded, because a part may hold what a
 * person typed.
 */
function compile(english: string): RegExp {
  const parts = english.split('{}').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('([^]{0,2100}?)')}(?:, got [^]{0,2100})?\\.?$`);
}
