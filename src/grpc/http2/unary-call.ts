import type { GrpcCall } from '../service.ts';
import { StatusError } from '../status.ts';
import { BaseCall, type CallParts } from './base-call.ts';
import { type FramedMessage, readWholeMessage } from './message-reader.ts';

type UnaryHandle = (request: Uint8Array, call: GrpcCall) => Uint8Array | Promise<Uint8Array>;

/** One message, one answer; in the same turn when the method can. */
export class UnaryCall extends BaseCall {
  readonly #handle: UnaryHandle;
  readonly #messages: FramedMessage[] = [];

  constructor(parts: CallParts, handle: UnaryHandle) {
    super(parts);
    this.#handle = handle;
  }

  override onData(bytes: Buffer, isLast: boolean): void {
    if (this.isEnded) return;
    try {
      const whole = isLast && this.#isFirst ? readWholeMessage(bytes, this.parts.maxMessageBytes) : undefined;
      if (whole === undefined) this.#collect(bytes, isLast);
      else this.#answer(whole);
    } catch (error) {
      this.fail(error);
    }
  }

  #isFirst = true;

  #collect(bytes: Buffer, isLast: boolean): void {
    this.#isFirst = false;
    this.#messages.push(...this.split(bytes));
    if (this.#messages.length > 1)
      throw new StatusError('UNIMPLEMENTED', 'Cannot answer: the call takes one message, got several');
    if (!isLast) {
      this.parts.stream.grant(bytes.length);
      this.startDeadline();
      return;
    }
    this.checkNothingLeft();
    const [message] = this.#messages;
    if (message === undefined)
      throw new StatusError('UNIMPLEMENTED', 'Cannot answer: the call needs a message, got none');
    if (!message.isCompressed) {
      this.#answer(message.bytes);
      return;
    }
    this.startDeadline();
    this.expand(message).then(
      (expanded) => this.#answer(expanded),
      (error: unknown) => this.fail(error),
    );
  }

  #answer(message: Buffer): void {
    if (this.isEnded) return;
    try {
      const answer = this.#handle(message, this);
      if (answer instanceof Uint8Array) this.#send(answer);
      else this.#sendLater(answer);
    } catch (error) {
      this.fail(error);
    }
  }

  #sendLater(answer: Promise<Uint8Array>): void {
    this.startDeadline();
    answer.then(
      (bytes) => this.#send(bytes),
      (error: unknown) => this.fail(error),
    );
  }

  #send(answer: Uint8Array): void {
    if (this.isEnded) return;
    this.sendMessage(answer);
    this.succeed();
  }
}
