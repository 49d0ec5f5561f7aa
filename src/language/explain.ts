/**
 * Translates English error messages for pages, by the phrases of a catalogue. Errors are created in English, since the API, the
 * log and the command line show them too. A catalogue has a phrase for each message that a page can show; a message without one
 * stays English.
 */

/** A message with `{}` for each variable part, and its translation with `{1}`, `{2}`, … in their place. */
export type Phrase = readonly [english: string, translated: string];

export function createExplainer(phrases: readonly Phrase[]): (message: string) => string {
  const shapes = phrases.flatMap(([english, translated]) =>
    listShapes(english).map((shape) => ({ ...shape, translated })),
  );
  return (message) => {
    // The page adds the full stop.
    const text = message.replace(/\.$/, '');
    for (const { translated, ...shape } of shapes) {
      const parts = readParts(shape, text);
      if (parts !== undefined)
        return translated.replace(/\{(\d)\}/g, (_, index: string) => parts[Number(index) - 1] ?? '');
    }
    return message;
  };
}

/** The fixed texts between the variable parts. */
interface Shape {
  readonly pieces: readonly string[];
  /** Anything may follow the last piece. */
  readonly isOpen: boolean;
}

/** The forms of a message: with `, got …` at the end, and without it. */
function listShapes(english: string): Shape[] {
  return [
    { pieces: `${english}, got `.split('{}'), isOpen: true },
    { pieces: english.split('{}'), isOpen: false },
  ];
}

/**
 * Returns the variable parts of a message of this form, else undefined. Each fixed piece is searched once, after the piece before
 * it: a variable part may hold untrusted input, and a regular expression with several wildcards would try all combinations.
 */
function readParts({ pieces: [first = '', ...others], isOpen }: Shape, text: string): string[] | undefined {
  if (!text.startsWith(first)) return undefined;
  const parts: string[] = [];
  let from = first.length;
  for (const [index, piece] of others.entries()) {
    const isEnd = !isOpen && index === others.length - 1;
    const at = isEnd ? text.length - piece.length : text.indexOf(piece, from);
    if (at < from || !text.startsWith(piece, at)) return undefined;
    parts.push(text.slice(from, at));
    from = at + piece.length;
  }
  return isOpen || from === text.length ? parts : undefined;
}
