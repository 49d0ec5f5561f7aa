/** Declares the type of a catalogue of texts, so that every language has the same keys and parameters. */
import { type Formats, formatsOf, type Locale } from './formats.ts';
import type { Language } from './language.ts';

/** The type of the English catalogue, with `string` instead of each literal text. */
export type Texts<T> = T extends (...parameters: infer P) => infer R
  ? (...parameters: P) => Texts<R>
  : T extends string
    ? string
    : T extends number | boolean | undefined | null
      ? T
      : { readonly [K in keyof T]: Texts<T[K]> };

/** A catalogue in one language, with the formats of one reader. */
export type Localized<T> = T & { readonly language: Language; readonly format: Formats };

export function localize<T extends object>(catalogue: Readonly<Record<Language, T>>, locale: Locale): Localized<T> {
  const { language } = locale;
  return { ...catalogue[language], language, format: formatsOf(locale) };
}
