/** Serves the form by which a reader switches the language of the pages. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { HttpEnv } from '../http/context.ts';
import { findLanguage, type Language } from '../language/language.ts';
import { checkOrigin, findPathBack } from './form-origin.ts';
import { LANGUAGE_PATH } from './layout.ts';
import { keepLanguage } from './locale.ts';
import { readField, readForm } from './page-routes.ts';

export interface LanguageSwitch {
  /** Where browsers reach the pages. */
  readonly baseUrl: string;
  /** Keeps the choice with the person, where people sign in. */
  readonly storeChoice?: (c: Context<HttpEnv>, language: Language) => Promise<void>;
}

/**
 * An unknown language changes nothing. The form has no token, since it is in the frame of every page, also of those for people who
 * have no cookie yet. `checkOrigin` is enough for it: browsers say where a form comes from, and a forged one could do no more than
 * show the pages in the other language. The way back is a path of this service, and the cookie that is set holds one of the two languages.
 */
export function addLanguageRoute(routes: OpenAPIHono<HttpEnv>, { baseUrl, storeChoice }: LanguageSwitch): void {
  routes.post(LANGUAGE_PATH, async (c) => {
    checkOrigin(c, baseUrl);
    const language = findLanguage(readField(await readForm(c), 'language'));
    if (language !== undefined) {
      keepLanguage(c, language, baseUrl);
      await storeChoice?.(c, language);
    }
    return c.redirect(findPathBack(c), 303);
  });
}
