import { Failure } from '../../errors.ts';
import type { GrpcMethod } from '../service.ts';
import { BaseCall } from './base-call.ts';
import type { FramedMessage } from './message-reader.ts';
import { RequestQueue } from './request-queue.ts';

/** Messages that may wait for a streaming method before its caller is held back. */
const MAX_WAITING_MESSAGES = 64;

/** Messages in, one or more out. */
export class StreamingCall extends BaseCall {
  readonly #queue = new RequestQueue<FramedMessage>();
  #held = 0;

  override onData(bytes: Buffer, isLast: boolean): void {
    if (this.isEnded) return;
    try {
      for (const message of this.split(bytes)) this.#queue.push(message);
      if (isLast) this.checkNothingLeft();
    } catch (error) {
      this.#queue.fail(error);
      this.fail(error);
    }
    if (isLast) this.#queue.end();
    else if (this.#queue.length < MAX_WAITING_MESSAGES) this.parts.stream.grant(bytes.length);
    else this.#held += bytes.length;
  }

  override onReset(): void {
    this.#queue.fail(new Failure('unavailable', 'Cannot read on: the caller left'));
    super.onReset();
  }

  /** The server drains: no more messages, and the method is told to end. */
  stop(): void {
    this.#queue.end();
    this.abort();
  }

  /** Starts the method. */
  run(method: Exclude<GrpcMethod, { kind: 'unary' }>): void {
    this.startDeadline();
    const requests = { [Symbol.asyncIterator]: () => ({ next: () => this.#next() }) };
    const run = Promise.try(() =>
      method.kind === 'stream'
        ? this.#sendAll(method.handle(requests, this))
        : this.#sendOne(method.handle(requests, this)),
    );
    run.then(
      () => this.succeed(),
      (error: unknown) => this.fail(error),
    );
  }

  async #next(): Promise<IteratorResult<Uint8Array>> {
    const message = await this.#queue.next();
    if (message === undefined) return { done: true, value: undefined };
    if (this.#held > 0 && this.#queue.length < MAX_WAITING_MESSAGES) {
      this.parts.stream.grant(this.#held);
      this.#held = 0;
    }
    return { done: false, value: await this.expand(message) };
  }

  async #sendOne(answer: Promise<Uint8Array>): Promise<void> {
    const bytes = await answer;
    if (!this.isEnded) this.sendMessage(bytes);
  }

  async #sendAll(answers: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const answer of answers) {
      if (this.isEnded) return;
      this.sendMessage(answer);
      this.parts.stream.connection.flush();
      await this.parts.stream.whenSent();
    }
  }
}
