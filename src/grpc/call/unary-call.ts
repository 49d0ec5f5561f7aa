/** Runs a call of one message and one answer, in the same turn of the event loop if the method is synchronous. */
import type { CallDependencies } from './base-call.ts';
import { OneMessageCall } from './one-message-call.ts';
import type { GrpcUnaryMethod } from './service.ts';

/** One message, one answer; in the same turn of the event loop if the method is synchronous. */
export class UnaryCall extends OneMessageCall {
  readonly #method: GrpcUnaryMethod;
  #isRunning = false;

  constructor(dependencies: CallDependencies, method: GrpcUnaryMethod) {
    super(dependencies);
    this.#method = method;
  }

  protected override get isRunning(): boolean {
    return this.#isRunning;
  }

  protected override start(message: Buffer): void {
    const answer = this.#method.handle(message, this);
    if (answer instanceof Uint8Array) this.#send(answer);
    else this.#sendLater(answer, message.buffer);
  }

  /** The method may read its request until it has answered, so all memory that the request keeps alive is counted. */
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
      if (this.isEnded) this.request?.drop();
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
    this.dropMessage();
    this.sendMessage(answer);
    this.succeed();
  }
}
