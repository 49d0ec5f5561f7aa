/** Chooses the texts of the frame by the language of the reader. */
import type { Context } from 'hono';
import type { HttpEnv } from '../http/context.ts';
import type { Locale } from '../language/formats.ts';
import type { Language } from '../language/language.ts';
import { type Localized, localize, type Texts } from '../language/texts.ts';
import { frameTexts as english } from './frame-texts.ts';
import { frameTextsZh as chinese } from './frame-texts-zh.ts';
import { readLocale } from './locale.ts';

/** The texts of the frame by language. The catalogue of each area includes them. */
export const frameCatalogue: Readonly<Record<Language, Texts<typeof english>>> = { en: english, 'zh-CN': chinese };

/** The texts of the frame that every page needs. */
export type FrameTexts = Localized<Texts<typeof english>>;

export function chooseFrameTexts(locale: Locale): FrameTexts {
  return localize(frameCatalogue, locale);
}

/** Returns the texts in the language and the time zone of this request. */
export function readFrameTexts(c: Context<HttpEnv>): FrameTexts {
  return chooseFrameTexts(readLocale(c));
}
