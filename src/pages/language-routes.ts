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
  /** The URL at which browsers reach the pages. */
  readonly baseUrl: string;
  /** Stores the choice with the signed-in person; absent where no one signs in. */
  readonly storeChoice?: (c: Context<HttpEnv>, language: Language) => Promise<void>;
}

/**
 * An unknown language changes nothing. The form has no token, since it is in the frame of every page, even before a browser has a
 * cookie. `checkOrigin` is enough here: browsers send the origin of a form, and a forged one could only show the pages in the other
 * language. The redirect leads to a path of this service, and the cookie holds one of the two languages.
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
