/**
 * Parses a large JSON body in parts, between which other calls are answered. `JSON.parse` cannot pause, and
 * 6 MiB take it up to seconds: 500,000 keys of one object do. So the lists of the body are cut between their items, and
 * each part is parsed alone.
 */
import { setImmediate as yieldToCalls } from 'node:timers/promises';
import { cutLists, type ListPart } from './cut-lists.ts';

/**
 * Undefined if the text is not JSON. Lists that are members of the body keep `maxItems` + 1 items: those beyond are
 * checked, and count in `length` alone. Throws `invalid` for what is nested too deeply, or too large to be parsed at once.
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

/** Undefined if they are not JSON: a part without an item follows a comma, or precedes one. */
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

/** Every list that is a member of the skeleton has one item: its number. */
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
