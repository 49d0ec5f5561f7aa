/**
 * Copies a part of a text, so that it does not keep the whole request in memory. What stays longer than the request that it came
 * with is copied.
 */
export function copyText(text: string): string {
  return Buffer.from(text).toString();
}
