/** Writes structured log lines to standard error, as JSON or text. It masks no secrets: the code that logs must leave them out. */
import { type DestinationStream, type Logger, pino } from 'pino';
import { toReadableLine } from './readable-log.ts';
import { UnblockedOutput } from './unblocked-output.ts';

export type Log = Logger;
export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** `auto`: text on a terminal, else JSON. */
export type LogFormat = 'auto' | 'json' | 'text';

/** JSON lines with ISO times. They go to standard error, so that standard output has only the result of a program. */
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

/** Opens standard error for `createLog`, in this format. */
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
  const output = new UnblockedOutput({ fd: 2, describeDropped });
  const lines = gatherLines(output);
  process.on('exit', () => output.end(() => lines.flush()));
  standardError = lines;
  return standardError;
}

function describeDropped(writes: number): string {
  const msg = 'the reader of the log was too slow: writes of log lines were dropped';
  return `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), writes, msg })}\n`;
}

export interface GatheredLines extends DestinationStream {
  flush(): void;
}

/**
 * Lines of one turn of the event loop are sent in one write: a system call for each would cost a good part of the work that the
 * line reports. At the end of the process they are written too, unless it is killed in that turn.
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
