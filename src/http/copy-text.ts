/**
 * Copies a part of a text, so that it does not keep the whole request in memory. It is for texts that stay longer than their
 * request.
 */
export function copyText(text: string): string {
  return Buffer.from(text).toString();
}
