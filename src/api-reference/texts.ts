/** Chooses the texts of the API pages by the language of the reader. */
import type { Context } from 'hono';
import type { HttpEnv } from '../http/context.ts';
import type { Language } from '../language/language.ts';
import { type Localized, localize, type Texts } from '../language/texts.ts';
import { readLocale } from '../pages/locale.ts';
import { referenceTexts as english } from './reference-texts.ts';
import { referenceTextsZh as chinese } from './reference-texts-zh.ts';

const catalogue: Readonly<Record<Language, Texts<typeof english>>> = { en: english, 'zh-CN': chinese };

export type ReferenceTexts = Localized<Texts<typeof english>>;

export function readReferenceTexts(c: Context<HttpEnv>): ReferenceTexts {
  return localize(catalogue, readLocale(c));
}
