/** RFC 7541: field blocks as a connection sees them. What they decode to is in hpack-decoder.test.ts. */
import { encodeHeaderBlock } from '../../../src/grpc/hpack/hpack-encoder.ts';
import { frame, HEADERS } from '../../support/grpc/http2-frames.ts';
import { answered, CALL, connectionError, data, END_HEADERS, END_STREAM, type Http2Case, hex } from '../http2-case.ts';

const block = encodeHeaderBlock(CALL);
const COMPRESSION_ERROR = connectionError('COMPRESSION_ERROR');

const rows: readonly (readonly [section: string, title: string, before: string, after: string, isGood?: true])[] = [
  ['2.3.3', 'a reference beyond the tables', '', 'be'],
  ['4.2', 'a size of the dynamic table behind a field', '', '20'],
  ['4.2', 'a size of the dynamic table before the fields', '20', '', true],
  ['4.2', 'two sizes of the dynamic table before the fields', '20 3fe11f', '', true],
  ['5.1', 'an integer that is too large', '', 'ffffffffffffff'],
  ['5.2', 'Huffman code padded with more than 7 bits', '', '00 8101 85 f2b24a84ff'],
  ['5.2', 'Huffman code padded with zeros', '', '00 8101 84 f2b24a80'],
  ['5.2', 'Huffman code with the end of the string inside', '', '00 8101 84 ffffffff'],
  ['5.2', 'a string that is cut off', '', '0085616263'],
  ['6.1', 'a reference to entry 0', '', '80'],
  ['6.3', 'a size of the dynamic table above ours', '3fe21f', ''],
];

export const hpackCases: readonly Http2Case[] = rows.map(([section, title, before, after, isGood]) => ({
  section: `RFC 7541 §${section}`,
  title,
  frames: [frame(HEADERS, END_HEADERS, 1, Buffer.concat([hex(before), block, hex(after)])), data(1, END_STREAM)],
  reaction: isGood ? answered() : COMPRESSION_ERROR,
}));
