/**
 * The minimal server for the load generator: a socket of Node, a look at frame headers for the end of a call, and the bytes of an
 * answer with its stream id. It decodes no headers and no messages, and has no flow control.
 */
import { createServer, type Socket } from 'node:net';
import { parseArgs } from 'node:util';
import { createAnswer } from './messages.ts';
import { serveReadings } from './readings.ts';

const { values } = parseArgs({ options: { candidates: { type: 'string', default: '64' } } });

const FRAME = { data: 0, headers: 1, settings: 4, windowUpdate: 8 } as const;
const END_STREAM = 0x1;
const END_HEADERS = 0x4;
const HEAD_BYTES = 9;
const PREFACE_BYTES = 24;
const GRANT = 1_048_576;
/** `:status: 200` from the static table, and a header block as long as ours. */
const HEADERS = Buffer.concat([Buffer.of(0x88), literal('content-type', 'application/grpc, identity,gzip,deflate')]);
const TRAILERS = literal('grpc-status', '0');

const message = createAnswer(Number(values.candidates));
const data = Buffer.concat([Buffer.alloc(5), message]);
data.writeUInt32BE(message.length, 1);
const dataAt = HEAD_BYTES + HEADERS.length;
const trailersAt = dataAt + HEAD_BYTES + data.length;
const answer = Buffer.concat([
  frame(FRAME.headers, END_HEADERS, HEADERS),
  frame(FRAME.data, 0, data),
  frame(FRAME.headers, END_HEADERS | END_STREAM, TRAILERS),
]);

const server = createServer(serve).listen(0, '127.0.0.1', () => {
  serveReadings((server.address() as { port: number }).port);
});
process.once('SIGTERM', () => process.exit(0));

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.write(Buffer.concat([frame(FRAME.settings, 0, Buffer.alloc(0)), grant(GRANT)]));
  let toSkip = PREFACE_BYTES;
  let head: Buffer = Buffer.alloc(0);
  let granted = 0;
  socket.on('data', (chunk: Buffer) => {
    const answers: Buffer[] = [];
    let bytes = chunk;
    if (head.length > 0) bytes = Buffer.concat([head, chunk]);
    head = Buffer.alloc(0);
    let position = toSkip;
    while (bytes.length - position >= HEAD_BYTES) {
      if (bytes[position + 3] === FRAME.data && (bytes[position + 4]! & END_STREAM) !== 0)
        answers.push(answerTo(bytes.readUInt32BE(position + 5)));
      position += HEAD_BYTES + bytes.readUIntBE(position, 3);
    }
    toSkip = Math.max(0, position - bytes.length);
    if (position < bytes.length) head = bytes.subarray(position);
    granted += chunk.length;
    if (granted > GRANT / 2) {
      answers.push(grant(granted));
      granted = 0;
    }
    if (answers.length > 0) socket.write(answers.length === 1 ? answers[0]! : Buffer.concat(answers));
  });
}

function answerTo(streamId: number): Buffer {
  const bytes = Buffer.from(answer);
  for (const at of [0, dataAt, trailersAt]) bytes.writeUInt32BE(streamId, at + 5);
  return bytes;
}

function grant(bytes: number): Buffer {
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(bytes);
  return frame(FRAME.windowUpdate, 0, increment);
}

function frame(type: number, flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  return Buffer.concat([head, payload]);
}

function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0x00, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]);
}
