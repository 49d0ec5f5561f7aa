/** Reads times as other programs write them: ISO 8601, HTTP and mail dates, and those of `date`, git, Go and JavaScript. */

/** No program writes a longer time. Limits the work on malicious input. */
const MAX_LENGTH = 100;

/** A repeated zone name, such as `(CET)` by JavaScript or `CST` by Go. Only the offset counts: `Date` reads `+0800 CST` as -0600. */
const ZONE_COMMENT = / ?\([^()]*\)$|(?<=[+-]\d\d:?\d\d) (?:[A-Z]{2,5}|[+-]\d{2,4})$/;

const OFFSET = String.raw`[+-]\d{1,2}(?::?\d\d)?`;
const ZONE_NAME = '(?<![A-Z])(?:Z|UTC?|GMT|[ECMP][SD]T)';
/** Offsets are read only after a time of day: `-2026` in `01-Mar-2026` is a year. */
const TIME_OF_DAY = String.raw`:\d\d(?:[\d:.]*|.* )`;
/** `date` and asctime write the year after the zone. */
const ZONE = new RegExp(String.raw`(?:${ZONE_NAME}(?:${OFFSET})?|(?<=${TIME_OF_DAY})${OFFSET})(?=(?: \d{4})?$)`, 'i');

const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*';
/** Positions of the day: `2026-03-01`, `3/1/2026`, `01-Mar-26`, `Mar 1 10:28:03 2026`. Needed because `Date` also accepts `run 7`. */
const DAYS = [
  String.raw`\d{4}[-/]\d\d?[-/](\d\d?)`,
  String.raw`(?<![\d-/])\d\d?[-/](\d\d?)[-/]\d{2}`,
  String.raw`(?<!\d)(\d\d?)[- ]${MONTH}[- ]\d{2}`,
  String.raw`${MONTH} +(\d\d?)(?!\d).* \d{4}`,
].map((text) => new RegExp(text, 'i'));

/** The T of ISO 8601 between day and time of day. */
const BETWEEN = /(?<=\d)T(?=\d)/;

/** Milliseconds since the epoch; NaN if it is not a time. Without a zone it is UTC, whatever the zone of this machine is. */
export function readForeignTimeMs(text: string): number {
  if (text.length > MAX_LENGTH) return Number.NaN;
  const time = text.trim().replace(ZONE_COMMENT, '');
  const isZoned = ZONE.test(time);
  const wallMs = parseZoned(isZoned ? time.replace(ZONE, ' UTC') : `${time} UTC`);
  // `Date` reads 30 February as 2 March.
  if (new Date(wallMs).getUTCDate() !== readDay(time)) return Number.NaN;
  return isZoned ? parseZoned(time) : wallMs;
}

function parseZoned(time: string): number {
  const timeMs = Date.parse(time);
  // `Date` accepts a T only with `Z` or `-05:00`, not with `-05` or ` UTC`.
  return Number.isNaN(timeMs) ? Date.parse(time.replace(BETWEEN, ' ')) : timeMs;
}

function readDay(time: string): number | undefined {
  const day = DAYS.map((pattern) => pattern.exec(time)?.[1]).find((found) => found !== undefined);
  return day === undefined ? undefined : Number(day);
}
