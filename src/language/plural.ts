/** Formats counts with their noun, by the plural rules of a language. */
import { formatsOf } from './formats.ts';

const english = formatsOf({ language: 'en', timeZone: 'UTC' });
const rules = new Intl.PluralRules('en');

export function formatCount(count: number): string {
  return english.count(count);
}

/** `1 delivery`, `1,200 deliveries`: English has two forms. Chinese has one, so its texts do not need this function. */
export function plural(count: number, one: string, other: string): string {
  return `${english.count(count)} ${rules.select(count) === 'one' ? one : other}`;
}
