/** Masks the passwords of addresses in a text that people see, `https://user:********@host`. */

export const MASK = '********';

/** In a valid URL, a password ends before the path. */
const PASSWORD = /(:\/\/[^\s/?#:@]*:)[^\s/?#]*@/g;
/** In any other text, a password may have characters that are not encoded. */
const LIKELY_PASSWORD = /(:\/\/[^\s:@]*:)\S*@/g;

export function maskPasswords(text: string): string {
  return text.replace(URL.canParse(text) ? PASSWORD : LIKELY_PASSWORD, `$1${MASK}@`);
}
