/** Chooses the texts of a notice by the language of each reader. */
import { DEFAULT_LANGUAGE, findLanguage, type Language } from '../language/language.ts';
import type { Texts } from '../language/texts.ts';
import { noticeTexts as english } from './notice-texts.ts';
import { noticeTextsZh as chinese } from './notice-texts-zh.ts';

export type NoticeTexts = Texts<typeof english>;

const catalogue: Readonly<Record<Language, NoticeTexts>> = { en: english, 'zh-CN': chinese };

/** English if the person has chosen no language. */
export function chooseNoticeTexts(language: string | null): NoticeTexts {
  return catalogue[findLanguage(language) ?? DEFAULT_LANGUAGE];
}
