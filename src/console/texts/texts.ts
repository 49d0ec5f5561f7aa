/** Chooses the texts of the console by the language of the reader. */
import type { Context } from 'hono';
import type { HttpEnv } from '../../http/context.ts';
import type { Locale } from '../../language/formats.ts';
import type { Language } from '../../language/language.ts';
import { type Localized, localize, type Texts } from '../../language/texts.ts';
import { readLocale } from '../../pages/locale.ts';
import { consoleTexts as english } from './console-texts.ts';
import { consoleTextsZh as chinese } from './console-texts-zh.ts';

const catalogue: Readonly<Record<Language, Texts<typeof english>>> = { en: english, 'zh-CN': chinese };

export type ConsoleTexts = Localized<Texts<typeof english>>;

export function chooseTexts(locale: Locale): ConsoleTexts {
  return localize(catalogue, locale);
}

/** Returns the texts in the language and the time zone of this request. */
export function readTexts(c: Context<HttpEnv>): ConsoleTexts {
  return chooseTexts(readLocale(c));
}
