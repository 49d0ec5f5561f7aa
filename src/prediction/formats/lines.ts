/** Splits a stream of bytes into numbered lines, and limits their length. */
import { Failure } from '../../errors.ts';

/** One line without its end, numbered from 1. */
export interface Line {
  readonly number: number;
  readonly text: string;
}

export const MAX_LINE_LENGTH = 4_194_304;

/** Yields the lines of a stream; empty lines are left out, but counted. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let rest = '';
  let number = 0;
  for await (const chunk of chunks) {
    // Only the new chunk is searched: a long line in small chunks would otherwise be searched again with each of them.
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    const parts = [rest + first, ...others];
    for (const [i, part] of parts.entries())
      if (part.length > MAX_LINE_LENGTH)
        throw new Failure('invalid', `Cannot read line ${number + i + 1}: it is longer than 4 MiB`);
    rest = parts.pop() ?? '';
    for (const part of parts) {
      number++;
      const text = part.endsWith('\r') ? part.slice(0, -1) : part;
      if (text.trim() !== '') yield { number, text };
    }
  }
  rest += decoder.decode();
  if (rest.trim() !== '') yield { number: number + 1, text: rest };
}
