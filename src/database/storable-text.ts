/** Finds characters that not every store keeps (NUL, lone surrogates) before a text is stored. */
export function findTextFault(text: string): string | undefined {
  // PostgreSQL allows no NUL in a text.
  if (text.includes('\0')) return 'must not contain the character NUL';
  // A lone surrogate has no UTF-8 encoding: drivers replace it, so that two texts could become equal.
  if (!text.isWellFormed()) return 'must be valid Unicode, got half of a surrogate pair';
  return undefined;
}
