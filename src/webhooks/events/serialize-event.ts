/** Writes an event as JSON, and replaces half characters in its texts, which are no UTF-8. */
import type { Event } from './event.ts';

/**
 * Half of a surrogate pair, as a program leaves that cuts a text at a number of UTF-16 units. `JSON.stringify` writes it, and it alone,
 * as this escape; an even number of backslashes before it is text.
 */
const HALF_CHARACTER = /(?<!\\)((?:\\\\)*)\\ud[89a-f][\da-f]{2}/g;

interface SerializedEvent {
  readonly event: Event;
  readonly content: string;
}

/** Strict parsers refuse JSON with half a character, and no URL can hold one: U+FFFD takes its place, as in the store. */
export function serializeEvent(event: Event): SerializedEvent {
  const content = JSON.stringify(event);
  if (!content.includes('\\ud')) return { event, content };
  const whole = content.replace(HALF_CHARACTER, '$1\uFFFD');
  return { event: JSON.parse(whole) as Event, content: whole };
}
