/** Collects the one message of a request, waits for its memory, and starts the call. */
import type { QueuedCall } from '../budget/call-queue.ts';
import { costOfBytes } from '../budget/turns.ts';
import { freeExpanded } from '../protocol/decompressor.ts';
import { type FramedMessage, readWholeMessage } from '../protocol/message-reader.ts';
import { StatusError } from '../protocol/status.ts';
import { BaseCall } from './base-call.ts';

/** A call whose request is one message. It starts once the message is complete: for a message in one piece, in the read that brought it. */
export abstract class OneMessageCall extends BaseCall {
  #message: FramedMessage | undefined;
  #queued: QueuedCall | undefined;
  #isFirst = true;
  #isComplete = false;

  override get isUnfinished(): boolean {
    return !this.#isComplete;
  }

  /** Whether the method still uses the message. */
  protected abstract get isRunning(): boolean;

  /** Hands the message to the method. The call fails with the error that the method throws. */
  protected abstract start(message: Buffer): void;

  override onData(bytes: Buffer, isLast: boolean): void {
    if (this.isEnded) return;
    try {
      const whole = isLast && this.#isFirst ? readWholeMessage(bytes, this.dependencies.maxMessageBytes) : undefined;
      if (whole !== undefined && this.mayStart) this.#startWhole(whole);
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
    for (let message = this.request?.take(); message !== undefined; message = this.request?.take()) {
      if (this.#message !== undefined)
        throw new StatusError('UNIMPLEMENTED', 'Cannot answer: the call takes one message, got several');
      this.#message = message;
    }
    if (!isLast) {
      this.reserveRoom();
      return;
    }
    this.stopMessageTimer();
    this.request?.checkNothingLeft();
    if (this.#message === undefined)
      throw new StatusError('UNIMPLEMENTED', 'Cannot answer: the call needs a message, got none');
    if (this.mayStart && !this.#message.isCompressed) this.#startKept(this.#message.bytes);
    else void this.#startLater();
  }

  /** The caller is checked before decompression. Only the call keeps the message, and drops it when it ends. */
  async #startLater(): Promise<void> {
    this.startDeadline();
    try {
      await this.admission;
    } catch {
      // The call has failed with this error already.
      return;
    }
    const message = this.#message;
    if (message === undefined) return;
    if (this.mayStart && !message.isCompressed) {
      this.#startKept(message.bytes);
      return;
    }
    this.#queued = { start: () => this.#decompressAndStart(), previous: undefined, next: undefined };
    this.dependencies.stream.connection.memory.callQueue.add(this.#queued);
  }

  async #decompressAndStart(): Promise<void> {
    const message = this.#message;
    if (message === undefined) return;
    try {
      const bytes = await this.decompress(message);
      this.#startKept(bytes);
      if (message.isCompressed && !this.isRunning && this.dependencies.route.method.keepsNoBytes) freeExpanded(bytes);
    } catch (error) {
      this.fail(error);
    }
  }

  /** Spends the cost of a message that came in several frames (one frame has paid for its bytes). All the work is done in this turn. */
  #startKept(message: Buffer): void {
    this.dependencies.stream.connection.share.spend(costOfBytes(message.length));
    this.#startWhole(message);
    if (!this.isRunning) this.recycleMessage();
  }

  #startWhole(message: Buffer): void {
    if (this.isEnded) return;
    this.#isComplete = true;
    try {
      if (this.dependencies.route.method.keepsNoBytes !== true) this.dependencies.stream.connection.keepRead();
      this.start(message);
    } catch (error) {
      this.fail(error);
    }
  }

  /** The method has used the message. */
  protected dropMessage(): void {
    this.#message = undefined;
    if (!this.isRunning) this.request?.drop();
  }

  protected override onEnd(): void {
    this.#message = undefined;
    if (this.#queued !== undefined) this.dependencies.stream.connection.memory.callQueue.remove(this.#queued);
    if (!this.isRunning) this.request?.drop();
  }
}
