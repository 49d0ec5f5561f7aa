/**
 * Writes as fast as it can until it is killed, and notes in a file what was acknowledged: `kind id`, one a line.
 * `node crash-writer.ts <data folder> <database url or ''> <prefix of the ids> <file>`.
 */
import { openSync, writeSync } from 'node:fs';
import { insertNoteSql, insertPair } from '../support/store/note-store.ts';
import { openNoteStore } from './open-note-store.ts';

const [dataDir = '', databaseUrl = '', prefix = '', file = ''] = process.argv.slice(2);
const notes = openSync(file, 'a');
const store = await openNoteStore({ dataDir, databaseUrl: databaseUrl === '' ? undefined : databaseUrl });

const KINDS = {
  single: async (id: string) => {
    await store.write(insertNoteSql, [id, 1]);
  },
  unit: async (id: string) => {
    const ids = [`${id}-a`, `${id}-b`];
    await store.writeAll(ids.map((each) => ({ statement: insertNoteSql, parameters: [each, 1] })));
  },
  procedure: async (id: string) => {
    await store.call(insertPair, id);
  },
};

async function writeForever(kind: keyof typeof KINDS, writer: number): Promise<void> {
  for (let count = 0; ; count += 1) {
    const id = `${prefix}${kind}-${writer}-${count}`;
    await KINDS[kind](id);
    // With the system before the next write begins, so a kill takes nothing of it.
    writeSync(notes, `${kind} ${id}\n`);
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
