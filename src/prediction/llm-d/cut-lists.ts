/**
 * Cuts a large JSON text into pieces of its lists, and the text around them (the skeleton), so that it can be parsed in pieces. In
 * the skeleton, each list has its number in place of its items. The text is JSON exactly if the skeleton and all pieces are; kinds
 * of brackets are not checked here.
 */
import { Failure } from '../../errors.ts';
import { findStringEnd, JSON_MAX_DEPTH, refuseNesting } from '../../http/parser-limits.ts';

/** The longest item of a list, and the longest body without its lists, that is parsed in one turn of the event loop. */
export const MAX_WHOLE_CHARACTERS = 65_536;
/** About a millisecond of parsing. */
export const CHARACTERS_A_PART = 16_384;
/** About a millisecond of cutting. */
const CHARACTERS_A_TURN = 131_072;

export interface ListPart {
  /** The number of the list. */
  readonly list: number;
  /** Items, with commas between them. */
  readonly text: string;
  /** True if the text has all items of the list. */
  readonly isWhole: boolean;
}

/** Yields undefined where the caller should pause. Returns the skeleton. */
export function* cutLists(text: string): Generator<ListPart | undefined, string> {
  const cutter = createCutter(text);
  let pauseAt = CHARACTERS_A_TURN;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) index = findStringEnd(text, index);
    else {
      const part = cutter.take(code, index);
      if (part !== undefined) yield part;
    }
    if (index < pauseAt) continue;
    yield undefined;
    pauseAt = index + CHARACTERS_A_TURN;
  }
  return cutter.end();
}

const [QUOTE, COMMA] = [0x22, 0x2c];
const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];
/** The nesting depth of the items of a list that is a member of the body. */
const ITEM_DEPTH = 2;

function createCutter(text: string) {
  let skeleton = '';
  let skeletonFrom = 0;
  let depth = 0;
  let list = -1;
  let items = 0;
  let isInList = false;
  let [listFrom, partFrom, itemFrom] = [0, 0, 0];

  function addToSkeleton(end: number): void {
    checkSize(skeleton.length + end - skeletonFrom, 'what is in no list');
    skeleton += text.slice(skeletonFrom, end);
  }

  function openList(index: number): void {
    list++;
    items = 0;
    isInList = true;
    [listFrom, partFrom, itemFrom] = [index + 1, index + 1, index + 1];
    addToSkeleton(index + 1);
    skeleton += list;
  }

  function endItem(index: number): void {
    items++;
    checkSize(index - itemFrom, `item ${items} of a list`);
    itemFrom = index + 1;
  }

  function cutPart(index: number): ListPart {
    const part = { list, text: text.slice(partFrom, index), isWhole: partFrom === listFrom && text[index] !== ',' };
    partFrom = index + 1;
    return part;
  }

  function closeList(index: number): ListPart {
    endItem(index);
    isInList = false;
    skeletonFrom = index;
    return cutPart(index);
  }

  return {
    /** Takes a character outside strings. */
    take(code: number, index: number): ListPart | undefined {
      if (code === OPEN_BRACKET || code === OPEN_BRACE) {
        if (++depth > JSON_MAX_DEPTH) throw refuseNesting();
        if (depth === ITEM_DEPTH && code === OPEN_BRACKET) openList(index);
        return undefined;
      }
      if (code === CLOSE_BRACKET || code === CLOSE_BRACE)
        return --depth < ITEM_DEPTH && isInList ? closeList(index) : undefined;
      if (code !== COMMA || !isInList || depth !== ITEM_DEPTH) return undefined;
      endItem(index);
      return index - partFrom < CHARACTERS_A_PART ? undefined : cutPart(index);
    },
    end(): string {
      // A list without a closing bracket is in no part, and the skeleton is then not JSON either.
      if (!isInList) addToSkeleton(text.length);
      return skeleton;
    },
  };
}

function checkSize(characters: number, what: string): void {
  if (characters <= MAX_WHOLE_CHARACTERS) return;
  throw new Failure(
    'invalid',
    `Cannot read the request: ${what} must have at most ${MAX_WHOLE_CHARACTERS} characters, got ${characters}`,
  );
}
