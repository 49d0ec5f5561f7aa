/** Reads the times of rows: ISO 8601 as Go, Python and databases write it. The offset counts; Go writes the name of the zone after it. */

const ISO_TIME =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?: ?(?:[Zz]|UTC|GMT|([+-]\d{2})(?::?(\d{2}))?(?: (?:[A-Z]{1,5}|[+-]\d{2,4})(?: m=[+-]\d+\.\d+)?)?))?)?$/;

/** Returns milliseconds since the epoch; NaN for an invalid time, such as 30 February. A time without a zone is UTC. */
export function readIsoTime(text: string): number {
  const [, day, minutes = '00:00', seconds = '00', fraction = '', hours = '+00', offset = '00'] =
    ISO_TIME.exec(text) ?? [];
  // `Date` reads 30 February as 2 March.
  if (day === undefined || new Date(`${day}T12:00:00Z`).toJSON()?.startsWith(day) !== true) return Number.NaN;
  return Date.parse(`${day}T${minutes}:${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}${hours}:${offset}`);
}
