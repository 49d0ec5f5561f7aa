/**
 * Parses a large JSON body in parts, between which other calls are answered. `JSON.parse` cannot pause, and 6 MiB can take it
 * seconds, such as for one object with 500,000 keys. So the lists of the body are cut between their items, and each part is parsed
 * alone.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { cutLists, type ListPart } from './cut-lists.ts';

/**
 * Returns undefined if the text is not JSON. Lists that are members of the body keep `maxItems` + 1 items; further items are checked,
 * and only count in `length`. Throws `invalid` for a body that is nested too deeply or has a piece too large to be parsed at once.
 */
export async function parseLargeBody(text: string, maxItems: number): Promise<unknown> {
  const lists: ItemList[] = [];
  const parts = cutLists(text);
  for (let next = parts.next(); ; next = parts.next()) {
    if (next.done === true) return fillLists(next.value, lists);
    const part = next.value;
    if (part !== undefined) {
      const items = parseItems(part);
      if (items === undefined) return undefined;
      lists[part.list] ??= { kept: [], count: 0 };
      appendItems(lists[part.list]!, items, maxItems);
    }
    await yieldToCalls();
  }
}

/** Returns undefined unless the items are JSON. A part without an item comes from a comma with nothing before or after it. */
function parseItems({ text, isWhole }: ListPart): readonly unknown[] | undefined {
  const items = parseOrUndefined(`[${text}]`) as readonly unknown[] | undefined;
  return items?.length === 0 && !isWhole ? undefined : items;
}

interface ItemList {
  readonly kept: unknown[];
  count: number;
}

function appendItems(list: ItemList, items: readonly unknown[], maxItems: number): void {
  list.kept.push(...items.slice(0, Math.max(0, maxItems + 1 - list.kept.length)));
  list.count += items.length;
}

function toArray({ kept, count }: ItemList): readonly unknown[] {
  kept.length = count;
  return kept;
}

/** Puts the lists into the skeleton, in which each list has one item: its number. */
function fillLists(skeleton: string, lists: readonly ItemList[]): unknown {
  const body = parseOrUndefined(skeleton);
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, Array.isArray(value) ? toArray(lists[value[0]]!) : value]),
  );
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
