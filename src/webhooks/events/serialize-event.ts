/** Writes an event as JSON, and replaces lone surrogates, which are not valid UTF-8. */
import type { Event } from './event.ts';

/**
 * A lone surrogate, which remains when a program cuts a text between two UTF-16 units. `JSON.stringify` writes only lone surrogates as
 * this escape. An even number of backslashes before it are text.
 */
const HALF_CHARACTER = /(?<!\\)((?:\\\\)*)\\ud[89a-f][\da-f]{2}/g;

interface SerializedEvent {
  readonly event: Event;
  readonly content: string;
}

/** Replaces lone surrogates with U+FFFD, as the store does: strict JSON parsers refuse them, and no URL can contain one. */
export function serializeEvent(event: Event): SerializedEvent {
  const content = JSON.stringify(event);
  if (!content.includes('\\ud')) return { event, content };
  const whole = content.replace(HALF_CHARACTER, '$1\uFFFD');
  return { event: JSON.parse(whole) as Event, content: whole };
}
