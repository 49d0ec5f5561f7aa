import { type DestinationStream, type Logger, pino } from 'pino';

export type Log = Logger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** JSON lines with ISO times. They go to standard error, so that standard output stays a program's own answer. */
export function createLog(level: LogLevel, destination: DestinationStream = openStandardError()): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
}

let standardError: DestinationStream | undefined;

function openStandardError(): DestinationStream {
  if (standardError !== undefined) return standardError;
  const lines = gatherLines(pino.destination({ fd: 2, sync: true }));
  process.on('exit', () => lines.flush());
  standardError = lines;
  return standardError;
}

export interface GatheredLines extends DestinationStream {
  flush(): void;
}

/**
 * Lines of one turn of the event loop go out in one write: a system call for each costs as much as much of what they are
 * about. At the end of the process they are written too, unless it is killed in that very turn.
 */
export function gatherLines(destination: DestinationStream): GatheredLines {
  let lines = '';
  const flush = () => {
    const gathered = lines;
    lines = '';
    if (gathered !== '') destination.write(gathered);
  };
  return {
    flush,
    write: (line) => {
      if (lines === '') setImmediate(flush);
      lines += line;
    },
  };
}
