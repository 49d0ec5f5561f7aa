/** Reads the deadline of a call from `grpc-timeout`. */
import { StatusError } from './status.ts';

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
const MAX_TIMER_MS = 0x7fff_ffff;

/** The last header and its value: most calls of a gateway have the same timeout. */
let lastHeader: string | undefined;
let lastMs: number | undefined;

/** Returns `grpc-timeout` in milliseconds, or undefined without one. Throws a StatusError for any other text. */
export function readTimeoutMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (header === lastHeader) return lastMs;
  lastMs = parseTimeoutMs(header);
  lastHeader = header;
  return lastMs;
}

function parseTimeoutMs(header: string): number {
  const match = /^(\d{1,8})([HMSmun])$/.exec(header);
  if (match === null)
    throw new StatusError(
      'INTERNAL',
      `Cannot read grpc-timeout: it must be 1 to 8 digits and one of H, M, S, m, u, n, got "${header.slice(0, 40)}"`,
    );
  return Math.min(Number(match[1]) * UNIT_MS[match[2]!]!, MAX_TIMER_MS);
}
