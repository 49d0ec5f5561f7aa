/**
 * Decides the language and time zone of a page: chosen in this browser, by the person, or by `Accept-Language`. The time zone
 * comes from the script of the pages; without it times are in UTC. What was sent from a page is read in the zone of that page.
 */
import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import type { HttpEnv } from '../http/context.ts';
import { isTimeZone, type Locale } from '../language/formats.ts';
import { DEFAULT_LANGUAGE, findLanguage, type Language, negotiateLanguage } from '../language/language.ts';

/** No secret, and harmless to plant: it is compared with a short list. */
const LANGUAGE_COOKIE = 'trivet_language';
/** Written by page.js. */
const TIME_ZONE_COOKIE = 'trivet_time_zone';
/** The hidden field, and the parameter of an address, that names the zone of the times beside it. */
export const ZONE_FIELD = 'zone';
const YEAR_SECONDS = 365 * 86_400;

export function readLocale(c: Context<HttpEnv>): Locale {
  return { language: readLanguage(c), timeZone: readTimeZone(c) };
}

function readLanguage(c: Context<HttpEnv>): Language {
  return (
    findLanguage(getCookie(c, LANGUAGE_COOKIE)) ??
    c.get('preferredLanguage') ??
    negotiateLanguage(c.req.header('accept-language')) ??
    DEFAULT_LANGUAGE
  );
}

/** The cookie may have changed since a page was shown: the first page of a browser is in UTC, and travellers change zones. */
function readTimeZone(c: Context<HttpEnv>): string {
  const names = [c.get('shownTimeZone'), c.req.query(ZONE_FIELD), getCookie(c, TIME_ZONE_COOKIE)];
  return names.find((name) => name !== undefined && isTimeZone(name)) ?? 'UTC';
}

/** Reads times in the zone that a form names; a form without one changes nothing. To be called before the texts are chosen. */
export function preferTimeZone(c: Context<HttpEnv>, form: URLSearchParams): void {
  const name = form.get(ZONE_FIELD);
  if (name !== null) c.set('shownTimeZone', name);
}

/** The choice of the signed-in person; null without one. To be called before the texts of the page are chosen. */
export function preferLanguage(c: Context<HttpEnv>, language: string | null): void {
  const known = findLanguage(language);
  if (known !== undefined) c.set('preferredLanguage', known);
}

/** Keeps the choice in this browser. `baseUrl`: behind a proxy that ends TLS, only it says that browsers use https. */
export function keepLanguage(c: Context<HttpEnv>, language: Language, baseUrl: string): void {
  const secure = new URL(baseUrl).protocol === 'https:';
  setCookie(c, LANGUAGE_COOKIE, language, { path: '/', maxAge: YEAR_SECONDS, sameSite: 'Lax', httpOnly: true, secure });
}
