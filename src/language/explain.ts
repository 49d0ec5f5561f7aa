/**
 * Refusals of a rule are English, since the API, the log and the command line show them too. Pages in another language
 * have a phrase for each that a person can meet; one without a phrase stays English.
 */

/** A message with `{}` for each part that changes, and its translation with `{1}`, `{2}`, … for them. */
export type Phrase = readonly [english: string, translated: string];

export function createExplainer(phrases: readonly Phrase[]): (message: string) => string {
  const shapes = phrases.flatMap(([english, translated]) =>
    listShapes(english).map((shape) => ({ ...shape, translated })),
  );
  return (message) => {
    // A page puts a full stop behind a message.
    const text = message.replace(/\.$/, '');
    for (const { translated, ...shape } of shapes) {
      const parts = readParts(shape, text);
      if (parts !== undefined)
        return translated.replace(/\{(\d)\}/g, (_, index: string) => parts[Number(index) - 1] ?? '');
    }
    return message;
  };
}

/** The texts between the parts that change. */
interface Shape {
  readonly pieces: readonly string[];
  /** Anything may follow the last piece. */
  readonly isOpen: boolean;
}

/** With and without what was given instead. */
function listShapes(english: string): Shape[] {
  return [
    { pieces: `${english}, got `.split('{}'), isOpen: true },
    { pieces: english.split('{}'), isOpen: false },
  ];
}

/**
 * Undefined for a text of another shape. Each piece is looked for once, behind the one before: a part may hold what a stranger
 * sent, and a regular expression with several parts would try all combinations.
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
