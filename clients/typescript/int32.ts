/** Rounds numbers for the int32 fields of messages: the JSON API refuses a whole prediction or report because of any other number. */

const MAX_INT32 = 2 ** 31 - 1;

/** Returns 0 for NaN. */
export function toInt32(value: number): number {
  return Math.min(Math.max(Math.round(value) || 0, -MAX_INT32), MAX_INT32);
}
