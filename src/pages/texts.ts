/** The texts of the frame, in the language of the reader. */
import type { Context } from 'hono';
import type { HttpEnv } from '../http/context.ts';
import type { Locale } from '../language/formats.ts';
import type { Language } from '../language/language.ts';
import { type Localized, localize, type Texts } from '../language/texts.ts';
import { frameTexts as english } from './frame-texts.ts';
import { frameTextsZh as chinese } from './frame-texts-zh.ts';
import { readLocale } from './locale.ts';

/** By language; the catalogue of each area contains it. */
export const frameCatalogue: Readonly<Record<Language, Texts<typeof english>>> = { en: english, 'zh-CN': chinese };

/** What every page is written with. */
export type FrameTexts = Localized<Texts<typeof english>>;

export function chooseFrameTexts(locale: Locale): FrameTexts {
  return localize(frameCatalogue, locale);
}

/** In the language and the time zone of this request. */
export function readFrameTexts(c: Context<HttpEnv>): FrameTexts {
  return chooseFrameTexts(readLocale(c));
}
