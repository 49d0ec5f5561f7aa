/**
 * Limits how much an event may hold: the API refuses what is longer, git and bridges shorten it. A caller of the API can mend
 * its event; for git and the bridges the push has happened, and a refused event would never be delivered.
 */
import { readForeignTimeMs } from './foreign-time.ts';

export const LIMITS = {
  /** Characters of a name, a title or an e-mail address. */
  word: 255,
  /** Characters of a message, a description or a path. */
  text: 262_144,
  /** Characters of a reference. A file system takes 4,096 bytes of path, and git stores a reference as a file. */
  ref: 4096,
  address: 2048,
  commits: 1000,
  parents: 128,
  coAuthors: 100,
  pushOptions: 100,
} as const;

/** A body lists this many commits at most, the newest; a count says how many there were. */
export const MAX_LISTED_COMMITS = 20;

/** The first characters of a text, without half of a surrogate pair at the end. */
export function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const isHalf = (text.charCodeAt(maxLength - 1) & 0xfc00) === 0xd800;
  return text.slice(0, isHalf ? maxLength - 1 : maxLength);
}

/** A day inside the years 0001 and 9999, so that no offset from UTC leaves them: ISO 8601 has four digits for a year. */
const FIRST_SECOND = Date.parse('0001-01-02T00:00:00Z') / 1000;
const LAST_SECOND = Date.parse('9999-12-30T23:59:59Z') / 1000;

/** Replaces a time that is missing or unreadable, as in git itself. */
export const EPOCH = '1970-01-01T00:00:00Z';

/** ISO 8601 from seconds since 1970 and an offset as git writes it (`+0530`), either of which may be nonsense. */
export function formatTime(seconds: number, offset: string): string {
  const [, sign, hours = '', minutes = ''] = /^([+-])([01]\d|2[0-3])([0-5]\d)$/.exec(offset) ?? [];
  const offsetSeconds = sign === undefined ? 0 : (sign === '-' ? -60 : 60) * (Number(hours) * 60 + Number(minutes));
  const local = new Date((clampSeconds(seconds) + offsetSeconds) * 1000).toISOString().slice(0, 19);
  return `${local}${sign === undefined ? '+00:00' : `${sign}${hours}:${minutes}`}`;
}

/** Into the years that ISO 8601 can write; 1970 for what is no number. */
export function clampSeconds(seconds: number): number {
  if (Number.isNaN(seconds)) return 0;
  return Math.min(Math.max(Math.trunc(seconds), FIRST_SECOND), LAST_SECOND);
}

const ISO_TIME = /^([+-]?\d{4,9})-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/;

/**
 * ISO 8601 of any time that another host writes (`2026-03-01 10:28:03 UTC` among them); undefined if it is not a time. Without a zone it
 * is UTC, whatever the zone of this machine is.
 */
export function parseTime(text: string): string | undefined {
  const year = Number(ISO_TIME.exec(text)?.[1]);
  if (year > 9999) return formatTime(LAST_SECOND, '');
  if (year < 1) return formatTime(FIRST_SECOND, '');
  const seconds = readForeignTimeMs(text) / 1000;
  return Number.isNaN(seconds) ? undefined : new Date(clampSeconds(seconds) * 1000).toISOString();
}
