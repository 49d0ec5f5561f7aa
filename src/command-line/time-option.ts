/** Parses times and durations in the options of commands. */
import { InvalidArgumentError } from 'commander';

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

/** The part of a refusal that all options share. */
export const DURATION_RULE = 'a duration such as 45m, 12h or 90d (units: ms, s, m, h, d, w)';
const TIME_RULE = 'an ISO 8601 time with Z or an offset (2026-03-01T10:00:00Z) or a date in UTC (2026-03-01)';
/** Examples in the help of an option that takes a time in the past. */
export const PAST_TIME_EXAMPLES = '1h (ago), 2026-03-01 or 2026-03-01T10:00:00Z';

const PARTS = /(\d{1,9}(?:\.\d{1,9})?)(ms|[smhdw])/gy;
/** The longest duration, 3,000 years: a time that far away is still in the range of `Date`. */
const MAX_DURATION_MS = 1e14;

/** Parses `90d`, `1h30m` or `1.5h` into milliseconds; undefined for anything else. */
export function readDuration(text: string): number | undefined {
  const parts = [...text.matchAll(PARTS)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return undefined;
  const totalMs = parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * UNIT_MS[unit]!, 0);
  return totalMs <= MAX_DURATION_MS ? totalMs : undefined;
}

const DATE_AND_TIME = /^(\d{4}-\d\d-\d\d)(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d))?$/;

/** Parses an ISO 8601 time or date into milliseconds since the epoch; undefined for anything else, such as 30 February. */
export function readTime(text: string): number | undefined {
  const [, date = ''] = DATE_AND_TIME.exec(text) ?? [];
  const timeMs = Date.parse(text.replace(' ', 'T').toUpperCase());
  // `Date` reads 30 February as 2 March.
  const isReal = new Date(`${date}T12:00:00Z`).toJSON()?.startsWith(date) === true;
  return isReal && date !== '' && !Number.isNaN(timeMs) ? timeMs : undefined;
}

/** The time of the store or the service that answers a command: it may differ from the machine's. */
export interface AnswererClock {
  readTimeMs(): Promise<number>;
}

/** Returns a time up to now in ISO 8601, by the clock of the store or service; the clock is read only for durations such as `1h`. */
export type PastTime = (clock: AnswererClock) => Promise<string>;

/** Parses the value of an option that takes a time up to now, or how long ago it was. */
export function parsePastTime(text: string): PastTime {
  const agoMs = readDuration(text);
  if (agoMs !== undefined) return async (clock) => formatTime(Math.max(0, (await clock.readTimeMs()) - agoMs));
  const timeMs = readTime(text);
  if (timeMs === undefined) throw refuse(`how long ago, as ${DURATION_RULE}, or ${TIME_RULE}`);
  return async () => formatTime(timeMs);
}

function formatTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/** Returns when something ends that begins at `nowMs`, by the clock of the store. Infinity for `never`. */
export type End = (nowMs: number) => number;

/** Parses the value of an option that takes a time from now on, or how far away it is. */
export function parseEnd(text: string): End {
  if (text === 'never') return () => Number.POSITIVE_INFINITY;
  const afterMs = readDuration(text);
  const timeMs = readTime(text);
  if (afterMs) return (nowMs) => Math.round(nowMs + afterMs);
  if (timeMs !== undefined) return () => timeMs;
  throw refuse(`${DURATION_RULE}, ${TIME_RULE}, or never`);
}

/** Parses the value of an option that takes a time, whenever it is. */
export function parseTime(text: string): number {
  const timeMs = readTime(text);
  if (timeMs === undefined) throw refuse(TIME_RULE);
  return timeMs;
}

interface DurationRange {
  /** A number without a unit is in this unit. */
  readonly bareUnit: 'ms' | 's' | 'h';
  /** The limits are in this unit too. */
  readonly minimum: number;
  readonly maximum: number;
}

/** Matches a decimal number in any notation: also `.5`, `5.`, `+5` and `1e-3`. */
const BARE_NUMBER = /^\+?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Parses the value of an option that takes a duration, or a number without a unit in the option's historical unit. */
export function durationIn({ bareUnit, minimum, maximum }: DurationRange): (text: string) => number {
  return (text) => {
    const value = BARE_NUMBER.test(text) ? Number(text) : (readDuration(text) ?? Number.NaN) / UNIT_MS[bareUnit]!;
    if (value >= minimum && value <= maximum) return value;
    throw refuse(`a number of ${bareUnit}, or ${DURATION_RULE}; ${minimum} to ${maximum} ${bareUnit}`);
  };
}

function refuse(rule: string): InvalidArgumentError {
  return new InvalidArgumentError(`it must be ${rule}.`);
}
