import { freeMemory } from '../../memory/free-memory.ts';
import type { QueuedCall } from '../budget/call-queue.ts';
import { costOfBytes } from '../budget/turns.ts';
import { BaseCall, type CallDependencies } from './base-call.ts';
import { type FramedMessage, readWholeMessage } from './message-reader.ts';
import type { GrpcUnaryMethod } from './service.ts';
import { StatusError } from './status.ts';

/** One message, one answer; in the same turn of the event loop if the method is synchronous. */
export class UnaryCall extends BaseCall {
  readonly #method: GrpcUnaryMethod;
  #message: FramedMessage | undefined;
  #queued: QueuedCall | undefined;
  #isFirst = true;
  #isComplete = false;
  #isRunning = false;

  constructor(dependencies: CallDependencies, method: GrpcUnaryMethod) {
    super(dependencies);
    this.#method = method;
  }

  override get isUnfinished(): boolean {
    return !this.#isComplete;
  }

  override onData(bytes: Buffer, isLast: boolean): void {
    if (this.isEnded) return;
    try {
      const whole = isLast && this.#isFirst ? readWholeMessage(bytes, this.dependencies.maxMessageBytes) : undefined;
      if (whole !== undefined && this.mayStart) this.#answer(whole);
      else this.#collect(bytes, isLast);
    } catch (error) {
      this.fail(error);
    }
  }

  override onReadEnd(): void {
    super.onReadEnd();
    if (!this.#isComplete) this.expectMessage();
  }

  #collect(bytes: Buffer, isLast: boolean): void {
    this.#isFirst = false;
    this.#isComplete = isLast;
    this.keep(bytes);
    for (let message = this.takeMessage(); message !== undefined; message = this.takeMessage()) {
      if (this.#message !== undefined)
        throw new StatusError('UNIMPLEMENTED', 'Cannot answer: the call takes one message, got several');
      this.#message = message;
    }
    if (!isLast) {
      this.reserveRoom();
      return;
    }
    this.noteMessage();
    this.checkNothingLeft();
    if (this.#message === undefined)
      throw new StatusError('UNIMPLEMENTED', 'Cannot answer: the call needs a message, got none');
    if (this.mayStart && !this.#message.isCompressed) this.#answerLarge(this.#message.bytes);
    else void this.#answerLater();
  }

  /** The caller is checked before anything is expanded. Only the call keeps the message, and drops it when it ends. */
  async #answerLater(): Promise<void> {
    this.startDeadline();
    try {
      await this.admission;
    } catch {
      // The call has failed with it.
      return;
    }
    const message = this.#message;
    if (message === undefined) return;
    if (this.mayStart && !message.isCompressed) {
      this.#answerLarge(message.bytes);
      return;
    }
    this.#queued = { start: () => this.#decompressAndAnswer(), previous: undefined, next: undefined };
    this.dependencies.stream.connection.memory.callQueue.add(this.#queued);
  }

  async #decompressAndAnswer(): Promise<void> {
    const message = this.#message;
    if (message === undefined) return;
    try {
      const bytes = await this.decompress(message);
      this.#answerLarge(bytes);
      if (message.isCompressed && !this.#isRunning && this.#method.keepsNoBytes) freeMemory(bytes);
    } catch (error) {
      this.fail(error);
    }
  }

  /** It did not come in one frame, whose bytes are paid for: what is done with it is all done in this turn. */
  #answerLarge(message: Buffer): void {
    this.dependencies.stream.connection.share.spend(costOfBytes(message.length));
    this.#answer(message);
    if (!this.#isRunning) this.recycleMessage();
  }

  #answer(message: Buffer): void {
    if (this.isEnded) return;
    try {
      if (this.#method.keepsNoBytes !== true) this.dependencies.stream.connection.keepRead();
      const answer = this.#method.handle(message, this);
      if (answer instanceof Uint8Array) this.#send(answer);
      else this.#sendLater(answer, message.buffer);
    } catch (error) {
      this.fail(error);
    }
  }

  /** The method may look at its request until it has answered, so all that the request keeps alive is counted. */
  #sendLater(answer: Promise<Uint8Array>, memory: ArrayBufferLike): void {
    const { callQueue, running } = this.dependencies.stream.connection.memory;
    this.startDeadline();
    this.dependencies.stream.connection.keepRead();
    this.#isRunning = true;
    const release = running.hold(memory);
    const settle = (): void => {
      this.#isRunning = false;
      release();
      this.recycleMessage();
      callQueue.resume();
      if (this.isEnded) this.dropRequest();
    };
    answer
      .then(
        (sent) => this.#send(sent),
        (error: unknown) => this.fail(error),
      )
      .finally(settle);
  }

  #send(answer: Uint8Array): void {
    if (this.isEnded) return;
    this.#message = undefined;
    if (!this.#isRunning) this.dropRequest();
    this.sendMessage(answer);
    this.succeed();
  }

  protected override onEnd(): void {
    this.#message = undefined;
    if (this.#queued !== undefined) this.dependencies.stream.connection.memory.callQueue.remove(this.#queued);
    if (!this.#isRunning) this.dropRequest();
  }
}
