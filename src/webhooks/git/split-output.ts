/** Splits a stream of bytes at a delimiter, and keeps a limited part of each piece. Each byte is searched once. */
export function createSplitter(delimiter: number, maxBytes: number, onPiece: (piece: Buffer) => void) {
  let kept: Buffer[] = [];
  let keptBytes = 0;
  const keep = (part: Buffer) => {
    if (keptBytes >= maxBytes || part.byteLength === 0) return;
    // A copy, since a view would keep the whole chunk in memory.
    const fitting = Buffer.from(part.subarray(0, maxBytes - keptBytes));
    kept.push(fitting);
    keptBytes += fitting.byteLength;
  };
  const flush = () => {
    const piece = kept.length === 1 ? kept[0] : Buffer.concat(kept);
    kept = [];
    keptBytes = 0;
    onPiece(piece as Buffer);
  };
  return {
    push: (chunk: Buffer) => {
      let start = 0;
      for (let end = chunk.indexOf(delimiter); end >= 0; end = chunk.indexOf(delimiter, start)) {
        keep(chunk.subarray(start, end));
        flush();
        start = end + 1;
      }
      keep(chunk.subarray(start));
    },
  };
}
