/** Decodes the compressed header blocks of a connection in their order (HPACK, RFC 7541), and limits their size. */

/** Header blocks of one connection, in their order (RFC 7541). */
import { ConnectionError, ERROR } from '../frames/frames.ts';
import { createField, type Field } from './fields.ts';
import { decodeHuffman } from './huffman.ts';

/** The static table of appendix A. Consecutive names with the value "" are written as one list. */
const STATIC_TABLE: readonly Field[] = [
  ':authority',
  ':method GET',
  ':method POST',
  ':path /',
  ':path /index.html',
  ':scheme http',
  ':scheme https',
  ':status 200',
  ':status 204',
  ':status 206',
  ':status 304',
  ':status 400',
  ':status 404',
  ':status 500',
  'accept-charset',
  'accept-encoding gzip, deflate',
  ...'accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control'.split(
    ' ',
  ),
  ...'content-disposition content-encoding content-language content-length content-location content-range'.split(' '),
  ...'content-type cookie date etag expect expires from host if-match if-modified-since if-none-match'.split(' '),
  ...'if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate'.split(' '),
  ...'proxy-authorization range referer refresh retry-after server set-cookie strict-transport-security'.split(' '),
  ...'transfer-encoding user-agent vary via www-authenticate'.split(' '),
].map((line) => {
  const space = line.indexOf(' ');
  return space < 0 ? createField(line, '') : createField(line.slice(0, space), line.slice(space + 1));
});

/** The overhead of an entry beside its bytes (§4.1). */
const ENTRY_OVERHEAD = 32;
const TABLE_BYTES = 4096;
/** The most bytes of the fields of a block, each with its overhead (§4.1, RFC 9113 §6.5.2). Our settings announce it. */
export const MAX_LIST_BYTES = 32_768;

/** The most fields of a block: a list of the allowed size has no more, and more would take long to decode. */
const MAX_FIELDS = MAX_LIST_BYTES / ENTRY_OVERHEAD;

/** A compression error (RFC 9113 §4.3), which ends the connection. */
export class HpackError extends Error {}

export class HpackDecoder {
  /** The dynamic table, newest entry first. */
  readonly #dynamic: Field[] = [];
  #dynamicBytes = 0;
  #maxBytes = TABLE_BYTES;
  #block: Buffer = Buffer.alloc(0);
  #position = 0;
  #end = 0;
  #listBytes = 0;
  /** The last block that had references only: calls of one client carry the same headers, and it means the same until an entry is added. */
  #lastBlock: Uint8Array = new Uint8Array(0);
  #lastFields: readonly Field[] | undefined;

  /**
   * Returns the fields of a block in order; undefined when they are larger than our settings allow (RFC 9113 §10.5.1). A block
   * that means the same as the last one returns the same array.
   */
  decode(block: Buffer): readonly Field[] | undefined {
    if (this.#lastFields !== undefined && areEqual(block, this.#lastBlock)) return this.#lastFields;
    this.#block = block;
    this.#position = 0;
    this.#end = block.length;
    this.#listBytes = 0;
    const fields: Field[] = [];
    const areOnlyReferences = this.#readFields(fields);
    const isTooLarge = this.#listBytes > MAX_LIST_BYTES;
    this.#lastFields = areOnlyReferences && !isTooLarge ? fields : undefined;
    if (this.#lastFields !== undefined) this.#lastBlock = Uint8Array.from(block);
    return isTooLarge ? undefined : fields;
  }

  /** Whether a later block with the same meaning returns this array again. */
  isRemembered(fields: readonly Field[] | undefined): boolean {
    return fields === this.#lastFields;
  }

  /** Returns whether the block had references only. */
  #readFields(fields: Field[]): boolean {
    let areOnlyReferences = true;
    let count = 0;
    while (this.#position < this.#end) {
      const first = this.#block[this.#position]!;
      if (first >= 0x20 && first < 0x40) {
        // §4.2: a change of the table size comes before the fields.
        if (this.#listBytes > 0) throw new HpackError('the size of the table changes after a field');
        this.#resize(this.#readInteger(5));
        areOnlyReferences = false;
        continue;
      }
      count += 1;
      if (count > MAX_FIELDS) throw new ConnectionError(ERROR.enhanceYourCalm, 'a header block has too many fields');
      const isReference = first >= 0x80;
      const field = isReference ? this.#find(this.#readInteger(7)) : this.#readLiteral(first);
      if (!isReference) areOnlyReferences = false;
      this.#listBytes += sizeOf(field);
      // A block that is too large is decoded to its end: the table must be right for later blocks.
      if (this.#listBytes <= MAX_LIST_BYTES) fields.push(field);
    }
    return areOnlyReferences;
  }

  #readLiteral(first: number): Field {
    const isAdded = first >= 0x40;
    const index = this.#readInteger(isAdded ? 6 : 4);
    const name = index === 0 ? this.#readString() : this.#find(index).name;
    const field = createField(name, this.#readString());
    if (isAdded) this.#add(field);
    return field;
  }

  #find(index: number): Field {
    const field =
      index <= STATIC_TABLE.length ? STATIC_TABLE[index - 1] : this.#dynamic[index - STATIC_TABLE.length - 1];
    if (field === undefined) throw new HpackError('a reference points nowhere');
    return field;
  }

  #add(field: Field): void {
    this.#lastFields = undefined;
    this.#dynamic.unshift(field);
    this.#dynamicBytes += sizeOf(field);
    this.#evict();
  }

  #resize(maxBytes: number): void {
    if (maxBytes > TABLE_BYTES) throw new HpackError('the table is made larger than allowed');
    this.#lastFields = undefined;
    this.#maxBytes = maxBytes;
    this.#evict();
  }

  #evict(): void {
    while (this.#dynamicBytes > this.#maxBytes) this.#dynamicBytes -= sizeOf(this.#dynamic.pop()!);
  }

  /** Reads an integer whose first byte holds `prefixBits` bits of it (§5.1). */
  #readInteger(prefixBits: number): number {
    const mask = 2 ** prefixBits - 1;
    let value = this.#readByte() & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = this.#readByte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new HpackError('an integer is too large');
  }

  #readString(): string {
    const isHuffman = this.#position < this.#end && this.#block[this.#position]! >= 0x80;
    const length = this.#readInteger(7);
    const start = this.#position;
    const end = start + length;
    if (end > this.#end) throw new HpackError('a string is cut off');
    this.#position = end;
    if (!isHuffman) return this.#block.toString('latin1', start, end);
    try {
      return decodeHuffman(this.#block, start, end);
    } catch (error) {
      throw new HpackError(String(error));
    }
  }

  #readByte(): number {
    if (this.#position >= this.#end) throw new HpackError('the block is cut off');
    return this.#block[this.#position++]!;
  }
}

function sizeOf({ name, value }: Field): number {
  return name.length + value.length + ENTRY_OVERHEAD;
}

function areEqual(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  return true;
}
