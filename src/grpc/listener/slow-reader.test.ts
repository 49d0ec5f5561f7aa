/** Answers are written into shared memory: a client that reads late, or leaves, must not corrupt the answers of another. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { createCertificate } from '../../../test/support/basics/certificate.ts';
import { SERVICE, startGrpcServer } from '../../../test/support/grpc/grpc-server.ts';
import {
  BEGINNING,
  block,
  DATA,
  frame,
  frameMessage,
  HEADERS,
  SETTINGS,
  WINDOW_UPDATE,
} from '../../../test/support/grpc/http2-frames.ts';
import type { GrpcMethod } from '../call/service.ts';

/** Requests so large that a read has few: their answers are one write, into a buffer of a size that is reused. */
const REQUEST_BYTES = 2000;
const ANSWER_BYTES = 6000;
/** 18 MB of answers: more than the kernel takes for a connection on both sides. */
const MANY_CALLS = 3000;

/** How many calls of each connection were answered, by the name that it sends. */
const answered = new Map<string, number>();
const repeatMethod: GrpcMethod = {
  kind: 'unary',
  name: 'Repeat',
  handle: (request) => {
    const text = Buffer.from(request).toString().trimEnd();
    const name = text.slice(0, text.indexOf('/'));
    answered.set(name, (answered.get(name) ?? 0) + 1);
    return repeat(text);
  },
};

/** An answer every part of which names its client. */
function repeat(text: string): Buffer {
  return Buffer.alloc(ANSWER_BYTES, `${text} `);
}

class Caller {
  readonly name: string;
  readonly socket: Socket;
  readonly #received = new Map<number, number>();
  #ended = 0;
  #rest: Buffer = Buffer.alloc(0);
  #calls = 0;

  constructor(name: string, socket: Socket) {
    this.name = name;
    this.socket = socket;
    this.socket.on('error', () => {});
    const huge = Buffer.from('3fffffff', 'hex');
    const window = frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from('0004', 'hex'), huge]));
    this.socket.write(Buffer.concat([...BEGINNING.map((part) => Buffer.from(part)), window]));
    this.socket.write(frame(WINDOW_UPDATE, 0, 0, huge));
  }

  /** Sends the requests without reading the answers. */
  ask(count: number): void {
    for (let index = 0; index < count; index++) {
      const streamId = 2 * this.#calls++ + 1;
      const message = frameMessage(Buffer.from(`${this.name}/${streamId}`.padEnd(REQUEST_BYTES)));
      const head = frame(HEADERS, 4, streamId, block(`/${SERVICE}/Repeat`));
      this.socket.write(Buffer.concat([head, frame(DATA, 1, streamId, message)]));
    }
  }

  /** Reads to the last answer, and checks every byte. */
  async readAll(): Promise<void> {
    while (this.#ended < this.#calls) {
      const chunk = this.socket.read() as Buffer | null;
      if (chunk !== null) this.#take(Buffer.concat([this.#rest, chunk]));
      else if (this.socket.closed) assert.fail(`${this.name} was not answered to the end`);
      else await Promise.race([once(this.socket, 'readable'), once(this.socket, 'close')]);
    }
  }

  #take(bytes: Buffer): void {
    let position = 0;
    while (position + 9 <= bytes.length) {
      const end = position + 9 + bytes.readUIntBE(position, 3);
      if (end > bytes.length) break;
      this.#check(bytes[position + 3]!, bytes.readUInt32BE(position + 5), bytes.subarray(position + 9, end));
      if (bytes[position + 3] === HEADERS && (bytes[position + 4]! & 1) === 1) this.#ended += 1;
      position = end;
    }
    this.#rest = bytes.subarray(position);
  }

  #check(type: number, streamId: number, payload: Buffer): void {
    if (type === HEADERS) return;
    if (type !== DATA) {
      assert.equal(streamId, 0, `a frame of type ${type} for ${this.name}`);
      return;
    }
    const from = this.#received.get(streamId) ?? 0;
    const to = from + payload.length;
    const expected = frameMessage(repeat(`${this.name}/${streamId}`)).subarray(from, to);
    assert.ok(payload.equals(expected), `bytes ${from} to ${to} of answer ${streamId} for ${this.name}`);
    this.#received.set(streamId, to);
  }
}

async function checkAnswers(dial: () => Socket, cutOff: (socket: Socket) => void): Promise<void> {
  answered.clear();
  const late = ['late-a', 'late-b'].map((name) => new Caller(name, dial()));
  const cut = ['cut-a', 'cut-b', 'cut-c'].map((name) => new Caller(name, dial()));
  for (const caller of [...late, ...cut]) caller.ask(MANY_CALLS);
  const prompt = new Caller('prompt', dial());
  for (let round = 0; round < 30; round++) {
    prompt.ask(5);
    await prompt.readAll();
    if (round % 10 === 5) cutOff(cut.pop()!.socket);
  }
  for (const caller of late) {
    const { name } = caller;
    assert.ok(answered.get(name)! < MANY_CALLS, `${name} must have been waited for`);
    await caller.readAll();
    assert.equal(answered.get(name), MANY_CALLS);
    prompt.ask(5);
    await prompt.readAll();
    caller.socket.destroy();
  }
  prompt.socket.destroy();
}

const TITLE =
  'answers arrive whole at who reads late, and at others, while connections are cut in the middle of a write';

test(TITLE, async () => {
  await using running = await startGrpcServer([repeatMethod]);
  const { port } = running.server;
  await checkAnswers(
    () => connect(port, '127.0.0.1'),
    (socket) => socket.resetAndDestroy(),
  );
});

test(`${TITLE}, over TLS`, async () => {
  await using running = await startGrpcServer([repeatMethod], { tls: createCertificate() });
  const { port } = running.server;
  await checkAnswers(
    () => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }),
    (socket) => socket.destroy(),
  );
});
