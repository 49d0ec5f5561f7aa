/** Writes structured log lines to standard error as JSON or text, and drops lines when their reader is too slow. */
import { type DestinationStream, type Logger, pino } from 'pino';
import { toReadableLine } from './readable-log.ts';

export type Log = Logger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** `auto`: text on a terminal, else JSON. */
export type LogFormat = 'auto' | 'json' | 'text';

/** JSON lines with ISO times. They go to standard error, so that standard output stays a program's own answer. */
export function createLog(level: LogLevel, destination: DestinationStream = openLogOutput('auto')): Log {
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

/** Log lines that wait for a slow reader, in bytes. Beyond this, new lines are dropped and counted. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** Standard error, which takes the lines of `createLog` in that format. */
export function openLogOutput(format: LogFormat): DestinationStream {
  const output = openStandardError();
  const isTerminal = process.stderr.isTTY;
  if (format === 'json' || (format === 'auto' && !isTerminal)) return output;
  const isColoured = isTerminal && process.stderr.hasColors();
  return { write: (line) => output.write(toReadableLine(line, isColoured)) };
}

let standardError: DestinationStream | undefined;

function openStandardError(): DestinationStream {
  if (standardError !== undefined) return standardError;
  const lines = openUnblocked(2);
  process.on('exit', () => lines.end());
  standardError = lines;
  return standardError;
}

interface UnblockedLines extends DestinationStream {
  /** Writes what waits, in this turn: for the end of the process. Skipped if the reader has stopped reading. */
  end(): void;
}

/**
 * Writes to a file descriptor without waiting for its reader. A pipe whose reader stops would otherwise stop the event
 * loop, and with it every answer of the service.
 */
function openUnblocked(fd: number): UnblockedLines {
  const output = pino.destination({ fd, sync: false, maxLength: MAX_WAITING_BYTES });
  const lines = gatherLines(output);
  let dropped = 0;
  output.on('drop', () => {
    dropped++;
  });
  output.on('drain', () => {
    if (dropped === 0) return;
    const count = dropped;
    dropped = 0;
    lines.write(`${JSON.stringify({ level: 'warn', time: new Date().toISOString(), writes: count, msg: DROPPED })}\n`);
  });
  return {
    write: (line) => lines.write(line),
    end: () => {
      lines.flush();
      if (dropped === 0) output.flushSync();
    },
  };
}

const DROPPED = 'the reader of the log was too slow: writes of log lines were dropped';

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
