/** Why not every store keeps this text as it is; undefined when each does. */
export function findTextFault(text: string): string | undefined {
  // PostgreSQL has no NUL in a text.
  if (text.includes('\0')) return 'must not contain the character NUL';
  // It has no UTF-8: drivers replace it, so that two texts would become the same.
  if (!text.isWellFormed()) return 'must be valid Unicode, got half of a surrogate pair';
  return undefined;
}
