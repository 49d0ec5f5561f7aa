/**
 * Translates English error messages for pages, by the phrases of a catalogue. Messages are made in English, since the API, the
 * log and the command line show them too. A catalogue has a phrase for each message that a person can meet; without one the
 * message stays English.
 */

/** A message with `{}` for each part that changes, and its translation with `{1}`, `{2}`, … for them. */
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

/** The texts between the parts that change. */
interface Shape {
  readonly pieces: readonly string[];
  /** Anything may follow the last piece. */
  readonly isOpen: boolean;
}

/** The shapes of a message, with the end `, got …` and without it. */
function listShapes(english: string): Shape[] {
  return [
    { pieces: `${english}, got `.split('{}'), isOpen: true },
    { pieces: english.split('{}'), isOpen: false },
  ];
}

/**
 * The parts of a message that has this shape, else undefined. Each fixed piece is searched once, behind the piece before: a part
 * may hold the input of a stranger, and a regular expression with several parts would try all combinations.
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
