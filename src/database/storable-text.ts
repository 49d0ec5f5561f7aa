/** Finds characters that not every store keeps, such as NUL, before a text is stored. */
export function findTextFault(text: string): string | undefined {
  // PostgreSQL has no NUL in a text.
  if (text.includes('\0')) return 'must not contain the character NUL';
  // It has no UTF-8: drivers replace it, so that two texts would become the same.
  if (!text.isWellFormed()) return 'must be valid Unicode, got half of a surrogate pair';
  return undefined;
}
