/**
 * Lists the languages of pages and mails, and finds the one that `Accept-Language` prefers. pages/locale.ts decides the language of
 * a page. The API, logs and commands are English.
 */
import { parseAccept } from 'hono/utils/accept';

/** Language tags (BCP 47), as `<html lang>` and `Intl` take them. The first is the default. */
export const LANGUAGES = ['en', 'zh-CN'] as const;
export type Language = (typeof LANGUAGES)[number];

export const DEFAULT_LANGUAGE: Language = 'en';

/** The name of each language in that language, so that a reader finds it on a page in another one. */
export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = { en: 'English', 'zh-CN': '简体中文' };

/** Characters of the header that are read: more than a browser sends. */
const MAX_HEADER_LENGTH = 1000;

export function findLanguage(text: string | null | undefined): Language | undefined {
  return LANGUAGES.find((language) => language === text);
}

/**
 * Follows RFC 9110 §12.5.4 with the lookup of RFC 4647 §3.4: the range with the highest weight that names one of our languages
 * wins. `zh` in every script and region is Simplified Chinese. Undefined when no range names one of our languages.
 */
export function negotiateLanguage(acceptLanguage: string | undefined): Language | undefined {
  const ranges = parseAccept((acceptLanguage ?? '').slice(0, MAX_HEADER_LENGTH)).filter(({ q }) => q > 0);
  for (const { type } of ranges) {
    const [primary] = type.toLowerCase().split('-');
    const found = LANGUAGES.find((language) => language.split('-')[0] === primary);
    if (found !== undefined) return found;
  }
  return undefined;
}
