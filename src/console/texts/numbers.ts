/** Numbers and counts as the pages write them: the one place that knows the reader's way to write them. */
const LOCALE = 'en';

export function formatCount(count: number): string {
  return count.toLocaleString(LOCALE);
}

export function plural(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Enough digits to compare by. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString(LOCALE, { maximumFractionDigits: digits });
}

export function formatMs(ms: number): string {
  return `${ms.toLocaleString(LOCALE, { maximumFractionDigits: ms < 10 ? 1 : 0 })} ms`;
}

/** The time of day, in UTC. */
export function formatClock(ms: number): string {
  return new Date(ms).toISOString().slice(11, 16);
}

/** The month and day, in UTC: `11-22`. */
export function formatDay(ms: number): string {
  return new Date(ms).toISOString().slice(5, 10);
}

/** How long ago, in its largest unit: `42 s`, `3 min`, `5 h`, `2 d`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const units: readonly (readonly [size: number, name: string])[] = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
  ];
  const [size, name] = units.find(([size]) => seconds >= size) ?? [1, 's'];
  return `${formatCount(Math.floor(seconds / size))} ${name}`;
}
