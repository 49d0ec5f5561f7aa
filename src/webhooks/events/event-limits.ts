/**
 * Limits the size of an event: the API refuses longer fields, git and bridges shorten them. A caller of the API can correct its event;
 * a push through git or a bridge has happened already, and a refused event would never be delivered.
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

/** The first `maxLength` UTF-16 units of a text, without a lone surrogate at the end. */
export function shorten(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const isHalf = (text.charCodeAt(maxLength - 1) & 0xfc00) === 0xd800;
  return text.slice(0, isHalf ? maxLength - 1 : maxLength);
}

/** A day inside the years 0001 and 9999, so that no offset from UTC leaves them: ISO 8601 has four digits for a year. */
const FIRST_SECOND = Date.parse('0001-01-02T00:00:00Z') / 1000;
const LAST_SECOND = Date.parse('9999-12-30T23:59:59Z') / 1000;

/** Stands in for a missing or unreadable time, as in git. */
export const EPOCH = '1970-01-01T00:00:00Z';

/** ISO 8601 from seconds since 1970 and an offset as git writes it (`+0530`), either of which may be invalid. */
export function formatTime(seconds: number, offset: string): string {
  const [, sign, hours = '', minutes = ''] = /^([+-])([01]\d|2[0-3])([0-5]\d)$/.exec(offset) ?? [];
  const offsetSeconds = sign === undefined ? 0 : (sign === '-' ? -60 : 60) * (Number(hours) * 60 + Number(minutes));
  const local = new Date((clampSeconds(seconds) + offsetSeconds) * 1000).toISOString().slice(0, 19);
  return `${local}${sign === undefined ? '+00:00' : `${sign}${hours}:${minutes}`}`;
}

/** Clamps seconds to the years of ISO 8601; 0 (1970) if it is not a number. */
export function clampSeconds(seconds: number): number {
  if (Number.isNaN(seconds)) return 0;
  return Math.min(Math.max(Math.trunc(seconds), FIRST_SECOND), LAST_SECOND);
}

const ISO_TIME = /^([+-]?\d{4,9})-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/;

/**
 * Converts a time in any form that code hosts write, such as `2026-03-01 10:28:03 UTC`, to ISO 8601; undefined if it is not a time. A
 * time without a zone is UTC, whatever the zone of this machine is.
 */
export function parseTime(text: string): string | undefined {
  const year = Number(ISO_TIME.exec(text)?.[1]);
  if (year > 9999) return formatTime(LAST_SECOND, '');
  if (year < 1) return formatTime(FIRST_SECOND, '');
  const seconds = readForeignTimeMs(text) / 1000;
  return Number.isNaN(seconds) ? undefined : new Date(clampSeconds(seconds) * 1000).toISOString();
}
