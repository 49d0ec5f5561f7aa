/** Runs a call whose client sends many messages: reads them one by one, and stops reading while the method is busy. */
import { Failure } from '../../errors.ts';
import { COST, costOfBytes } from '../budget/turns.ts';
import { type FramedMessage, MESSAGE_HEAD_BYTES } from '../protocol/message-reader.ts';
import { BaseCall, type CallDependencies } from './base-call.ts';
import type { EndlessCall } from './endless-call.ts';
import type { GrpcStreamMethod } from './service.ts';

// Created once: a thousand calls may end with their connection.
const CALLER_LEFT = new Failure('unavailable', 'Cannot read on: the caller left');
const CALL_ENDED = new Failure('unavailable', 'Cannot read on: the call has ended');

/** The bytes of a waiting call: its stream, and the generators and promises of its method. */
export const WAITING_STREAM_BYTES = 6656;

/** Messages in, messages out. The caller may send as many bytes again as the method has used. */
export class StreamingCall extends BaseCall implements EndlessCall {
  previous: EndlessCall | undefined;
  next: EndlessCall | undefined;
  readonly #method: GrpcStreamMethod;
  #isLast = false;
  #isStopped = false;
  #isReset = false;
  #failure: unknown;
  #wake: (() => void) | undefined;
  /** The length of the message that the method works on. */
  #inUse = 0;

  constructor(dependencies: CallDependencies, method: GrpcStreamMethod) {
    super(dependencies);
    this.#method = method;
  }

  override get isUnfinished(): boolean {
    return this.#wake !== undefined;
  }

  protected override get waitingBytes(): number {
    return WAITING_STREAM_BYTES;
  }

  override onData(bytes: Buffer, isLast: boolean): void {
    if (this.isEnded || this.#isStopped) return;
    this.keep(bytes);
    this.#isLast = isLast;
    this.#wake?.();
  }

  override onReset(): void {
    this.#isReset = true;
    this.#failure ??= CALLER_LEFT;
    super.onReset();
  }

  /** The server drains: the messages end, and the abort signal asks the method to end. */
  stop(): void {
    this.#isStopped = true;
    this.#wake?.();
    this.abort();
  }

  /** Starts the method. */
  run(): void {
    if (this.isEnded) return;
    this.dependencies.stream.connection.share.spend(COST.stream);
    this.startDeadline();
    const requests = { [Symbol.asyncIterator]: () => ({ next: () => this.#next() }) };
    Promise.resolve(this.admission)
      .then(() => this.#sendAll(this.#method.handle(requests, this)))
      .then(
        () => this.succeed(),
        (error: unknown) => this.fail(error),
      )
      .finally(() => this.request?.drop());
  }

  /** Creates promises only where it must wait: a promise per message would be garbage. */
  async #next(): Promise<IteratorResult<Uint8Array>> {
    this.#finishMessage();
    let message = this.#take();
    for (; message === undefined; message = this.#take()) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isLast || this.#isStopped) return { done: true, value: undefined };
      await this.#waitForMore();
      this.#wake = undefined;
    }
    this.stopMessageTimer();
    this.#inUse = MESSAGE_HEAD_BYTES + message.bytes.length;
    const turn = this.dependencies.stream.connection.share.take(COST.message + costOfBytes(message.bytes.length));
    if (turn !== undefined) await turn;
    await this.#untilWritable();
    return { done: false, value: message.isCompressed ? await this.#expand(message) : message.bytes };
  }

  /** The method has used the previous message. */
  #finishMessage(): void {
    if (this.#inUse > 0) this.dependencies.stream.connection.progress.mark();
    this.request?.release(this.#inUse);
    this.#inUse = 0;
    this.recycleMessage();
  }

  #waitForMore(): Promise<void> {
    this.reserveRoom();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async #expand(message: FramedMessage): Promise<Buffer> {
    const bytes = await this.decompress(message);
    this.dependencies.stream.connection.share.spend(costOfBytes(bytes.length));
    return bytes;
  }

  #take(): FramedMessage | undefined {
    try {
      const message = this.request?.take();
      if (message === undefined && this.#isLast && !this.isEnded) this.request?.checkNothingLeft();
      return message;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  async #sendAll(answers: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const answer of answers) {
      if (this.isEnded) return;
      this.dependencies.stream.connection.share.spend(COST.answer);
      this.sendMessage(answer);
      this.dependencies.stream.connection.flushSoon();
      await this.dependencies.stream.whenSent();
      await this.#untilWritable();
    }
  }

  /** All waiting streams are woken at once, and the first of them may fill the socket again. */
  async #untilWritable(): Promise<void> {
    const { connection } = this.dependencies.stream;
    for (let writable = connection.whenWritable(); writable !== undefined; writable = connection.whenWritable())
      await writable;
  }

  protected override onEnd(): void {
    this.#failure ??= CALL_ENDED;
    // The method still gets the messages that arrived before the caller left.
    if (!this.#isReset) this.request?.drop();
    this.#wake?.();
  }
}
