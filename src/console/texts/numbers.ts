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
