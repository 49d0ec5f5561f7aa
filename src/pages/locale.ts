/**
 * Decides the language and time zone of a page: chosen in this browser, by the person, or by `Accept-Language`. The time zone
 * comes from the script of the pages; without it times are in UTC. Times in a form are read in the zone of the page that it was on.
 */
import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import type { HttpEnv } from '../http/context.ts';
import { isTimeZone, type Locale } from '../language/formats.ts';
import { DEFAULT_LANGUAGE, findLanguage, type Language, negotiateLanguage } from '../language/language.ts';

/** Neither secret nor dangerous if an attacker sets it: the value is compared with a short list. */
const LANGUAGE_COOKIE = 'trivet_language';
/** Written by page.js. */
const TIME_ZONE_COOKIE = 'trivet_time_zone';
/** The hidden field and the query parameter that name the zone of the times beside them. */
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

/** The cookie comes last, since it may have changed since the page was shown: a browser's first page is in UTC, and people travel. */
function readTimeZone(c: Context<HttpEnv>): string {
  const names = [c.get('shownTimeZone'), c.req.query(ZONE_FIELD), getCookie(c, TIME_ZONE_COOKIE)];
  return names.find((name) => name !== undefined && isTimeZone(name)) ?? 'UTC';
}

/** Reads times in the zone that a form names; a form without a zone changes nothing. Call this before the texts are chosen. */
export function preferTimeZone(c: Context<HttpEnv>, form: URLSearchParams): void {
  const name = form.get(ZONE_FIELD);
  if (name !== null) c.set('shownTimeZone', name);
}

/** Prefers the language that the signed-in person chose; null without a choice. Call this before the texts of the page are chosen. */
export function preferLanguage(c: Context<HttpEnv>, language: string | null): void {
  const known = findLanguage(language);
  if (known !== undefined) c.set('preferredLanguage', known);
}

/** Keeps the choice in this browser. `baseUrl`: behind a proxy that terminates TLS, only it shows that browsers use https. */
export function keepLanguage(c: Context<HttpEnv>, language: Language, baseUrl: string): void {
  const secure = new URL(baseUrl).protocol === 'https:';
  setCookie(c, LANGUAGE_COOKIE, language, { path: '/', maxAge: YEAR_SECONDS, sameSite: 'Lax', httpOnly: true, secure });
}
