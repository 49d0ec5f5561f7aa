/** Finds environment variables that look like a misspelt setting, for a warning; config.ts refuses unknown names in the file. */
import type { Environment } from './config.ts';
import { settings } from './settings.ts';

export interface MisspeltVariable {
  readonly variable: string;
  /** The setting whose name is nearest. */
  readonly meant: string;
}

const MAX_EDITS = 2;
/** Shorter names are not compared: within two edits are names of other programs, such as `HOST` or `PORT`. */
const MIN_LENGTH = 7;

/** Returns variables whose names are nearly those of settings. The environment also serves other programs, so these are hints. */
export function findMisspeltVariables(environment: Environment): MisspeltVariable[] {
  const known = Object.values(settings).flatMap((section) => Object.values(section).map((setting) => setting.env));
  const all = new Set(known);
  const names = Object.keys(environment).filter((name) => name.length >= MIN_LENGTH && !all.has(name));
  return names.flatMap((variable) => {
    const meant = known.find((name) => name.length >= MIN_LENGTH && countEdits(variable, name) <= MAX_EDITS);
    return meant === undefined ? [] : [{ variable, meant }];
  });
}

/** Levenshtein distance: insertions, deletions and substitutions from one text to the other; beyond `MAX_EDITS` any larger number. */
function countEdits(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MAX_EDITS) return MAX_EDITS + 1;
  let row = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (const [index, letter] of one.split('').entries()) {
    const next = [index + 1];
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = row[column - 1]! + (letter === other[column - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[column]! + 1, next[column - 1]! + 1));
    }
    row = next;
    // The distance is at least the minimum of a row: for most names, the first letters show that they are too different.
    if (Math.min(...row) > MAX_EDITS) return MAX_EDITS + 1;
  }
  return row[other.length]!;
}
