/**
 * Writes as fast as it can until it is killed, and says on standard output what was acknowledged: `kind id`, one a line.
 * `node crash-writer.ts <data folder> <database url or ''> <prefix of the ids>`.
 */
import { writeSync } from 'node:fs';
import { insertNote, insertPair } from '../support/note-store.ts';
import { openNoteStore } from './open-note-store.ts';

const [dataDir = '', databaseUrl = '', prefix = ''] = process.argv.slice(2);
const store = await openNoteStore({ dataDir, databaseUrl: databaseUrl === '' ? undefined : databaseUrl });

const KINDS = {
  single: async (id: string) => {
    await store.write(insertNote, [id, 1]);
  },
  unit: async (id: string) => {
    const ids = [`${id}-a`, `${id}-b`];
    await store.writeAll(ids.map((each) => ({ statement: insertNote, parameters: [each, 1] })));
  },
  procedure: async (id: string) => {
    await store.call(insertPair, id);
  },
};

async function writeForever(kind: keyof typeof KINDS, writer: number): Promise<void> {
  for (let count = 0; ; count += 1) {
    const id = `${prefix}${kind}-${writer}-${count}`;
    await KINDS[kind](id);
    // At once and not through a stream: what is said must be in the pipe before the next write begins.
    writeSync(1, `${kind} ${id}\n`);
  }
}

const WRITERS_OF_A_KIND = 4;
const writers = Array.from({ length: WRITERS_OF_A_KIND }, (_, index) => index);
await Promise.all(
  writers.flatMap((writer) => [
    writeForever('single', writer),
    writeForever('unit', writer),
    writeForever('procedure', writer),
  ]),
);
