/** Joins a header block from HEADERS and its CONTINUATION frames, and limits its size. */
import { freeMemory } from '../../memory/free-memory.ts';
import { checkDependency } from './frame-payloads.ts';
import { ConnectionError, ERROR, FLAG } from './frames.ts';

const NOTHING = Buffer.alloc(0);
const MAX_FRAMES = 64;
/** Larger than the limit of a decoded field list: refusing only the call with too many fields requires decoding its block. */
const MAX_BLOCK_BYTES = 98_304;

/** A header block whose frames have all arrived. */
export interface HeaderBlock {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly bytes: Buffer;
}

/** Joins a header block from HEADERS and its CONTINUATION frames (RFC 9113 §6.2, §6.10). */
export class HeaderAssembler {
  readonly #countKept: (bytes: number) => void;
  #streamId = 0;
  #endsStream = false;
  #frames = 0;
  /** Separate memory that is freed with the block: as garbage, thousands of blocks would make V8 mark the whole heap. */
  #memory = NOTHING;
  #length = 0;

  /** `countKept` is called with the bytes of the incomplete block, whenever their number changes. */
  constructor(countKept: (bytes: number) => void) {
    this.#countKept = countKept;
  }

  /** The stream whose block is incomplete: only its CONTINUATION may come. Undefined between blocks. */
  get openStreamId(): number | undefined {
    return this.#frames === 0 ? undefined : this.#streamId;
  }

  /** Takes a HEADERS frame without its padding; returns the block if it is complete. */
  begin(streamId: number, flags: number, payload: Buffer): HeaderBlock | undefined {
    const bytes = withoutPriority(streamId, flags, payload);
    if (streamId % 2 === 0) throw new ConnectionError(ERROR.protocol, 'a client opens odd streams only');
    const endsStream = (flags & FLAG.endStream) !== 0;
    if ((flags & FLAG.endHeaders) !== 0) return { streamId, endsStream, bytes };
    this.#streamId = streamId;
    this.#endsStream = endsStream;
    this.#keep(bytes);
    return undefined;
  }

  /** Takes a CONTINUATION frame; returns the block if this was its last frame. */
  continue(flags: number, payload: Buffer): HeaderBlock | undefined {
    if (this.#frames === 0) throw new ConnectionError(ERROR.protocol, 'a continuation continues nothing');
    this.#keep(payload);
    if (this.#length > MAX_BLOCK_BYTES || this.#frames > MAX_FRAMES)
      throw new ConnectionError(ERROR.enhanceYourCalm, 'a header block is too large');
    if ((flags & FLAG.endHeaders) === 0) return undefined;
    this.#frames = 0;
    return { streamId: this.#streamId, endsStream: this.#endsStream, bytes: this.#memory.subarray(0, this.#length) };
  }

  /** Must be called when the last block is used: no code reads its bytes afterwards. */
  free(): void {
    if (this.#length === 0) return;
    freeMemory(this.#memory);
    this.#memory = NOTHING;
    this.#length = 0;
    this.#countKept(0);
  }

  /** A copy: a few bytes must not keep the whole read. */
  #keep(bytes: Buffer): void {
    this.#frames += 1;
    if (this.#length + bytes.length > this.#memory.length) this.#grow(2 * (this.#length + bytes.length));
    this.#memory.set(bytes, this.#length);
    this.#length += bytes.length;
    this.#countKept(this.#memory.length);
  }

  #grow(bytes: number): void {
    const larger = Buffer.from(new ArrayBuffer(bytes));
    larger.set(this.#memory.subarray(0, this.#length));
    freeMemory(this.#memory);
    this.#memory = larger;
  }
}

function withoutPriority(streamId: number, flags: number, payload: Buffer): Buffer {
  if ((flags & FLAG.priority) === 0) return payload;
  if (payload.length < 5) throw new ConnectionError(ERROR.frameSize, 'a priority is cut off');
  checkDependency(streamId, payload);
  return payload.subarray(5);
}
