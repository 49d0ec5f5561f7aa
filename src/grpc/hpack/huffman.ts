/** Decodes strings in the Huffman code of HPACK (RFC 7541, appendix B). */

/** The code length of each byte in bits, and last of the end of a string (RFC 7541, appendix B). The code is canonical. */
const CODE_LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
];
const END_OF_STRING = 256;
const MAX_PADDING_BITS = 7;
const SHORTEST_CODE_BITS = 5;

/** Two entries a node, one for each bit: the next node, or −1 − symbol. */
const TREE = buildTree();

/** The output of one string at a time: a buffer for each would be garbage that no budget counts. It grows to the largest string. */
let decoded = Buffer.alloc(0);

/** Throws a RangeError for bytes that no encoder writes: a wrong padding, or the end-of-string symbol inside the string. */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string {
  const maxLength = Math.ceil(((end - start) * 8) / SHORTEST_CODE_BITS);
  if (maxLength > decoded.length) decoded = Buffer.allocUnsafeSlow(maxLength);
  let length = 0;
  let node = 0;
  let bitsSinceSymbol = 0;
  let arePaddingBits = true;
  for (let index = start; index < end; index++) {
    const byte = bytes[index]!;
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >> shift) & 1;
      const next = TREE[node + bit]!;
      bitsSinceSymbol += 1;
      arePaddingBits &&= bit === 1;
      if (next >= 0) {
        node = next;
        continue;
      }
      const symbol = -1 - next;
      if (symbol === END_OF_STRING) throw new RangeError('the end of a string is written out');
      decoded[length++] = symbol;
      node = 0;
      bitsSinceSymbol = 0;
      arePaddingBits = true;
    }
  }
  if (!arePaddingBits || bitsSinceSymbol > MAX_PADDING_BITS) throw new RangeError('the padding of a string is wrong');
  return decoded.toString('latin1', 0, length);
}

function buildTree(): Int32Array {
  const tree = new Int32Array(4 * CODE_LENGTHS.length);
  let nodes = 1;
  const add = (symbol: number, code: number, length: number): void => {
    let node = 0;
    for (let shift = length - 1; shift > 0; shift--) {
      const slot = node + ((code >>> shift) & 1);
      if (tree[slot] === 0) tree[slot] = 2 * nodes++;
      node = tree[slot]!;
    }
    tree[node + (code & 1)] = -1 - symbol;
  };
  let code = 0;
  for (let length = 5; length <= 30; length++) {
    for (const [symbol, symbolLength] of CODE_LENGTHS.entries()) {
      if (symbolLength !== length) continue;
      add(symbol, code, length);
      code += 1;
    }
    code *= 2;
  }
  return tree;
}
