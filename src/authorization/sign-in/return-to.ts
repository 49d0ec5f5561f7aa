/** Checks the path to which a sign-in returns, so that it never leads to another site (open redirect). */

/** The longest URL-encoded path that fits in the sign-in URL: Node limits the request head to 16 KiB. */
const MAX_ENCODED_LENGTH = 12_000;

/**
 * Returns the value if it is a path of this service, or undefined. A browser reads `//evil.example` and `/\evil.example` as
 * another host, and drops tabs and line ends, so only a value that is still a path after parsing passes.
 */
export function parseReturnTo(value: string | null | undefined): string | undefined {
  if (!value?.startsWith('/') || value.length > MAX_ENCODED_LENGTH || hasControlCharacter(value)) return undefined;
  const base = 'http://self.invalid';
  if (!URL.canParse(value, base)) return undefined;
  const url = new URL(value, base);
  // Parsing also resolves dots: "/.//evil.example" would become "//evil.example".
  if (url.origin !== base || url.pathname.startsWith('//') || value.includes('\\')) return undefined;
  const path = url.pathname + url.search + url.hash;
  return encodeURIComponent(path).length <= MAX_ENCODED_LENGTH ? path : undefined;
}

function hasControlCharacter(value: string): boolean {
  for (const character of value) if (character < ' ' || character === '\x7f') return true;
  return false;
}
