/** Formats numbers, dates and durations by the language and time zone of the reader. */
import type { Language } from './language.ts';

export interface Locale {
  readonly language: Language;
  /** A name of the IANA time zone database, or `UTC`. */
  readonly timeZone: string;
}

export interface Formats {
  readonly count: (count: number) => string;
  /** A number with two decimals below 10, one below 100, and none above: enough to compare values. */
  readonly number: (value: number) => string;
  /** A share in percent, without the sign: `100` only for exactly 100 %, and `0` only for exactly 0 %. */
  readonly percent: (share: number) => string;
  readonly milliseconds: (ms: number) => string;
  /** A duration in the largest unit that fits, rounded down. */
  readonly duration: (ms: number) => string;
  /** A setting, exact: `15 days`, `90 min`. */
  readonly exactDuration: (seconds: number) => string;
  /** The name of the zone in the time zone database. */
  readonly timeZone: string;
  /** The instant at which a clock of the zone shows `2026-11-22T16:41` (seconds are allowed); undefined for any other text. */
  readonly readInstant: (text: string) => Date | undefined;
  /** A day, with the name of its month. */
  readonly date: (ms: number) => string;
  /** `2026-11-22 16:41`, which sorts; the zone is written beside it. */
  readonly minute: (ms: number) => string;
  readonly second: (ms: number) => string;
  /** The time of day. */
  readonly clock: (ms: number) => string;
  /** The month and day: `11-22`. */
  readonly day: (ms: number) => string;
  /** The time zone, as it is written after a time: `UTC`, `GMT+8`. */
  readonly zone: (ms: number) => string;
}

/** Bounds the cache: a zone costs a formatter of several kilobytes, readers are in few zones, and a request may name any zone. */
const MAX_KEPT = 100;
const kept = new Map<string, Formats>();

export function formatsOf(locale: Locale): Formats {
  const key = `${locale.language} ${locale.timeZone}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const formats = createFormats(locale);
  if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value ?? '');
  kept.set(key, formats);
  return formats;
}

function createFormats({ language, timeZone }: Locale): Formats {
  const fractions = [0, 1, 2].map((digits) => new Intl.NumberFormat(language, { maximumFractionDigits: digits }));
  const write = (value: number, digits: number) => fractions[digits]!.format(value);
  const date = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short', year: 'numeric', timeZone });
  const readParts = createPartsReader(timeZone);
  return {
    count: (count) => write(count, 0),
    number: (value) => write(value, countDigits(value)),
    percent: (share) => {
      const shown = clampShare(share);
      return write(shown, countDigits(shown));
    },
    milliseconds: (ms) => `${write(ms, ms < 10 ? 1 : 0)} ms`,
    ...createDurationFormats(language),
    timeZone,
    readInstant: (text) => readInstant(text, readParts),
    date: (ms) => date.format(ms),
    minute: (ms) => readParts(ms).slice(0, 16),
    second: (ms) => readParts(ms),
    clock: (ms) => readParts(ms).slice(11, 16),
    day: (ms) => readParts(ms).slice(5, 10),
    zone: createZoneFormat(timeZone),
  };
}

function countDigits(value: number): number {
  const size = Math.abs(value);
  if (size >= 100) return 0;
  return size >= 10 ? 1 : 2;
}

/** Keeps a share between 0 % and 100 % from being rounded to either. */
function clampShare(share: number): number {
  return share <= 0 || share >= 100 ? share : Math.min(99.9, Math.max(0.01, share));
}

const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;

/** Computed twice, since the offset of the zone may differ between the first guess and the instant. */
function readInstant(text: string, writeLocal: (ms: number) => string): Date | undefined {
  const asUtcMs = LOCAL_TIME.test(text) ? Date.parse(`${text}Z`) : Number.NaN;
  // `Date` reads February 30 as a day in March.
  if (Number.isNaN(asUtcMs) || !new Date(asUtcMs).toISOString().startsWith(text)) return undefined;
  const offsetAt = (ms: number) => Date.parse(`${writeLocal(ms).replace(' ', 'T')}Z`) - Math.floor(ms / 1000) * 1000;
  const guessMs = asUtcMs - offsetAt(asUtcMs);
  // `Intl` writes years before 1000 without leading zeros, and `Date.parse` rejects such a text.
  const instant = Number.isNaN(guessMs) ? undefined : new Date(asUtcMs - offsetAt(guessMs));
  return Number.isNaN(instant?.getTime()) ? undefined : instant;
}

/** `2026-11-22 16:41:05` in the zone. Swedish writes dates and times as ISO 8601 does. */
function createPartsReader(timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium', timeZone });
  return (ms) => format.format(ms);
}

function createZoneFormat(timeZone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'shortOffset' });
  return (ms) => {
    if (timeZone === 'UTC') return 'UTC';
    return format.formatToParts(ms).find(({ type }) => type === 'timeZoneName')?.value ?? timeZone;
  };
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

function createDurationFormats(language: Language): Pick<Formats, 'duration' | 'exactDuration'> {
  const formats = UNITS.map(([unit, size]) => ({
    size,
    format: new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'short' }),
  }));
  const write = (seconds: number, fits: (size: number) => boolean) => {
    const { size, format } = formats.find((one) => fits(one.size)) ?? formats.at(-1)!;
    return format.format(Math.floor(seconds / size));
  };
  return {
    duration: (ms) => {
      const seconds = Math.max(0, Math.floor(ms / 1000));
      return write(seconds, (size) => seconds >= size);
    },
    exactDuration: (seconds) => write(seconds, (size) => seconds % size === 0),
  };
}

/** Bounds the cache of names: each request checks a name several times, and a check without the cache takes 1/6 ms. */
const MAX_NAMES = 1000;
const isZoneByName = new Map<string, boolean>();

/** True for a zone that `Intl` knows. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  const known = isZoneByName.get(name);
  if (known !== undefined) return known;
  if (isZoneByName.size >= MAX_NAMES) isZoneByName.clear();
  const isZone = canFormat(name);
  isZoneByName.set(name, isZone);
  return isZone;
}

function canFormat(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}
