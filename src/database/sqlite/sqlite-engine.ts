/** Implements the store on SQLite: reads in process, writes through the writer thread. */
import { Failure } from '../../errors.ts';
import type { Log } from '../../telemetry/log.ts';
import type { Engine } from '../engine.ts';
import { createReadCache } from './read-cache.ts';
import { openSqliteConnection } from './sqlite-connection.ts';
import { createSqliteWriter } from './sqlite-writer.ts';

export interface SqliteOptions {
  readonly path: string;
  readonly log: Log;
  readonly maxWaiting?: number;
}

/** Reads run here, in the process, from the newest commit; writes go to the writer thread. */
export function openSqliteEngine(options: SqliteOptions): Engine {
  const reader = openSqliteConnection(options.path, 'read');
  const writer = createSqliteWriter(options);
  const cache = createReadCache(reader);
  let isClosed = false;
  let lastDataVersion = -1;

  const checkOpen = (): void => {
    if (isClosed) throw new Failure('unavailable', 'Cannot use the database: it is closed');
  };

  return {
    name: 'sqlite',
    read: async (statement, parameters) => {
      checkOpen();
      return reader.run(statement, parameters);
    },
    readAll: async (statements) => {
      checkOpen();
      return statements.map(({ statement, parameters }) => reader.run(statement, parameters));
    },
    readCached: async (statement, parameters) => {
      checkOpen();
      return cache.readCached(statement, parameters);
    },
    writeAll: (statements) => writer.writeAll(statements),
    call: (procedure, input) => writer.call(procedure, input),
    mayHaveChanged: () => {
      const version = reader.dataVersion();
      const hasChanged = version !== lastDataVersion;
      lastDataVersion = version;
      return hasChanged;
    },
    clockAheadMs: () => 0,
    countWaiting: () => writer.countWaiting(),
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      await writer.close();
      reader.close();
    },
  };
}
