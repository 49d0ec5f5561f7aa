/** Reads times as other programs write them: ISO 8601, HTTP and mail dates, and those of `date`, git, Go and JavaScript. */

/** No program writes a longer one. It bounds the work on what a stranger sends in place of a time. */
const MAX_LENGTH = 100;

/** The zone once more, as JavaScript `(CET)` and Go `CST` write it. The offset counts; `Date` takes `+0800 CST` for -0600. */
const ZONE_COMMENT = / ?\([^()]*\)$|(?<=[+-]\d\d:?\d\d) (?:[A-Z]{2,5}|[+-]\d{2,4})$/;

const OFFSET = String.raw`[+-]\d{1,2}(?::?\d\d)?`;
const ZONE_NAME = '(?<![A-Z])(?:Z|UTC?|GMT|[ECMP][SD]T)';
/** Offsets are read behind a time of day alone: `-2026` in `01-Mar-2026` is a year. */
const TIME_OF_DAY = String.raw`:\d\d(?:[\d:.]*|.* )`;
/** `date` and asctime write the year behind the zone. */
const ENDS_WITH_ZONE = new RegExp(`(?:${ZONE_NAME}(?:${OFFSET})?|${TIME_OF_DAY}${OFFSET})(?: \\d{4})?$`, 'i');

/** The T of ISO 8601 between day and time of day. */
const BETWEEN = /(?<=\d)T(?=\d)/;

/** Milliseconds since the epoch; NaN if it is not a time. Without a zone it is UTC, whatever the zone of this machine is. */
export function readForeignTimeMs(text: string): number {
  if (text.length > MAX_LENGTH) return Number.NaN;
  const time = text.trim().replace(ZONE_COMMENT, '');
  const zoned = ENDS_WITH_ZONE.test(time) ? time : time + (BETWEEN.test(time) ? 'Z' : ' UTC');
  const timeMs = Date.parse(zoned);
  // `Date` takes a T with `Z` and `-05:00` alone, not with `-05` or ` UTC`.
  return Number.isNaN(timeMs) ? Date.parse(zoned.replace(BETWEEN, ' ')) : timeMs;
}
