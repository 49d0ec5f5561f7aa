/** Refuses a Parquet page whose run lengths claim more values than it may have. */
import type { PageHeader } from 'hyparquet';

export interface RunRules {
  readonly type: string;
  /** With nulls, the page has a level for each row: 1 if it has a value. */
  readonly isNullable: boolean;
  readonly decompress: (page: Uint8Array, bytes: number) => Uint8Array;
}

/** Throws when a run claims more values than are left in its data page. */
export function checkRuns(bytes: Uint8Array, header: PageHeader, rules: RunRules): void {
  if (header.type === 'DATA_PAGE') checkFirstVersion(bytes, header, rules);
  else checkSecondVersion(bytes, header, rules);
}

function checkFirstVersion(bytes: Uint8Array, header: PageHeader, { type, isNullable, decompress }: RunRules): void {
  const { num_values, encoding } = header.data_page_header!;
  const page = decompress(bytes, header.uncompressed_page_size);
  const start = isNullable ? passLevels(page, num_values) : 0;
  checkValues(page.subarray(start), { count: num_values, encoding, type });
}

/** In version 2, the levels come before the compressed values and are not compressed. */
function checkSecondVersion(bytes: Uint8Array, header: PageHeader, { type, isNullable, decompress }: RunRules): void {
  const page = header.data_page_header_v2!;
  const levels = page.definition_levels_byte_length;
  if (page.repetition_levels_byte_length !== 0 || !(levels >= 0 && levels <= bytes.length))
    throw new RangeError('a page must have the levels that it says');
  if (page.num_rows !== page.num_values || !(page.num_nulls >= 0 && page.num_nulls <= page.num_values))
    throw new RangeError('a page must have one value or none in each row');
  if (isNullable && levels > 0) walkRuns(bytes.subarray(0, levels), 1, page.num_values);
  const rest = bytes.subarray(levels);
  const values = page.is_compressed === false ? rest : decompress(rest, header.uncompressed_page_size - levels);
  checkValues(values, { count: page.num_values - page.num_nulls, encoding: page.encoding, type });
}

/** Checks the levels, and returns the offset of the values after them. */
function passLevels(page: Uint8Array, count: number): number {
  const length = new DataView(page.buffer, page.byteOffset, page.length).getUint32(0, true);
  if (length > page.length - 4) throw new RangeError('the levels of a page must lie within it');
  walkRuns(page.subarray(4, 4 + length), 1, count);
  return 4 + length;
}

interface Values {
  readonly count: number;
  readonly encoding: string;
  readonly type: string;
}

function checkValues(page: Uint8Array, { count, encoding, type }: Values): void {
  if (count === 0 || (encoding !== 'RLE' && !encoding.endsWith('_DICTIONARY'))) return;
  if (type === 'BOOLEAN') passLevels(page, count);
  else if (page.length > 0 && page[0]! > 32) throw new RangeError('an index must have at most 32 bits');
  else if (page.length > 0 && page[0]! > 0) walkRuns(page.subarray(1), page[0]!, count);
}

/** Walks Parquet's hybrid of repeated values and bit-packed groups, each of which has a header. */
function walkRuns(bytes: Uint8Array, width: number, count: number): void {
  let left = count;
  let at = 0;
  while (left > 0 && at < bytes.length) {
    let head = 0;
    let shift = 1;
    for (; at < bytes.length; shift *= 128) {
      const byte = bytes[at++]!;
      head += (byte & 0x7f) * shift;
      if (byte < 0x80) break;
      if (shift > 2 ** 28) throw new RangeError('the head of a run must have at most 5 bytes');
    }
    const isPacked = head % 2 === 1;
    const values = Math.floor(head / 2) * (isPacked ? 8 : 1);
    // Values are bit-packed in groups of 8, and the last group may be padded.
    if (values > left + (isPacked ? 7 : 0))
      throw new RangeError(`a run must have at most ${left} values, got ${values}`);
    at += isPacked ? (values / 8) * width : Math.ceil(width / 8);
    left -= values;
  }
}
