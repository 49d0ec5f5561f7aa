/** Finds what a person changed in a form that shows a whole object, so that a form opened earlier undoes no later change. */
import { createHash } from 'node:crypto';
import { renderHidden } from '../elements.ts';
import type { Html } from '../layout.ts';

/** The hidden field with a digest of each value that the page showed. The values themselves would make the form twice as long. */
const SHOWN = 'shown_digests';
/** The hidden field of a page that was opened before an upgrade: it holds the values themselves. */
const FORMER_SHOWN = 'shown';

export interface FormChange<Values extends object> {
  /** The values that differ from those that the page showed and from those stored: these have to be stored. */
  readonly changed: Partial<Values>;
  /** The values for the form when it is shown again: what the person changed, and the rest as it is stored now. */
  readonly values: Values;
  /** The person changed a value that has also changed in the store since the page was shown. */
  readonly isOutdated: boolean;
}

/** Renders the hidden field. `stored`: the current values, which the form shows or keeps. */
export function renderShown(stored: object): Html[] {
  return renderHidden({ [SHOWN]: JSON.stringify(digestAll(stored)) });
}

/** Compares a form without either hidden field with the stored values. A value changed in both places is the stored one in `values`. */
export function readChange<Values extends object>(
  form: URLSearchParams,
  { sent, stored }: { readonly sent: Values; readonly stored: Values },
): FormChange<Values> {
  const now = digestAll(stored);
  const shown = { ...now, ...readShown(form) };
  const keys = Object.keys(stored) as (keyof Values)[];
  const edited = keys.filter((key) => ![shown[key], now[key]].includes(digest(sent[key])));
  const outdated = edited.filter((key) => now[key] !== shown[key]);
  return {
    changed: pick(sent, edited),
    values: {
      ...stored,
      ...pick(
        sent,
        edited.filter((key) => !outdated.includes(key)),
      ),
    },
    isOutdated: outdated.length > 0,
  };
}

function readShown(form: URLSearchParams): object {
  const digests = form.get(SHOWN);
  return digests === null ? digestAll(parseShown(form.get(FORMER_SHOWN) ?? '')) : parseShown(digests);
}

function parseShown(text: string): object {
  try {
    const shown: unknown = JSON.parse(text);
    return typeof shown === 'object' && shown !== null ? shown : {};
  } catch {
    return {};
  }
}

function pick<Values extends object>(values: Values, keys: readonly (keyof Values)[]): Partial<Values> {
  return Object.fromEntries(keys.map((key) => [key, values[key]])) as Partial<Values>;
}

function digestAll<Values extends object>(values: Values): Record<keyof Values, string> {
  const digests = Object.entries(values).map(([name, value]) => [name, digest(value)]);
  return Object.fromEntries(digests) as Record<keyof Values, string>;
}

/** In base64url characters: 96 bits, so a collision by chance is negligible. */
const DIGEST_LENGTH = 16;

function digest(value: unknown): string {
  const text = JSON.stringify(normalize(value));
  return createHash('sha256').update(text).digest('base64url').slice(0, DIGEST_LENGTH);
}

/** Browsers send each line break as CRLF, and trim an address. */
function normalize(value: unknown): unknown {
  return typeof value === 'string' ? value.trim().replaceAll(/\r\n?/g, '\n') : (value ?? null);
}
