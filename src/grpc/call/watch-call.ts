/** Runs a call of one message and many answers, such as a health watch, of which a client may open thousands. */
import { COST } from '../budget/turns.ts';
import type { CallDependencies } from './base-call.ts';
import type { EndlessCall } from './endless-call.ts';
import { OneMessageCall } from './one-message-call.ts';
import type { GrpcWatchMethod } from './service.ts';

/** One message, and answers whenever the method has one. A client may open thousands, so a waiting call has no promise and no generator. */
export class WatchCall extends OneMessageCall implements EndlessCall {
  previous: EndlessCall | undefined;
  next: EndlessCall | undefined;
  readonly #method: GrpcWatchMethod;
  #end: (() => void) | undefined;

  constructor(dependencies: CallDependencies, method: GrpcWatchMethod) {
    super(dependencies);
    this.#method = method;
  }

  override get waitsForClient(): boolean {
    return true;
  }

  protected override get isRunning(): boolean {
    return false;
  }

  protected override start(message: Buffer): void {
    this.dependencies.stream.connection.share.spend(COST.stream);
    const end = this.#method.watch(message, (answer) => this.#send(answer));
    // If the first answer found no room, it has ended the call.
    if (this.isEnded) end();
    else this.#end = end;
    this.dropMessage();
  }

  /** The server drains. */
  stop(): void {
    if (this.#end === undefined) this.onCut('the server stops');
    else this.succeed();
  }

  #send(answer: Uint8Array): void {
    if (this.isEnded) return;
    this.dependencies.stream.connection.share.spend(COST.answer);
    this.sendMessage(answer);
    this.dependencies.stream.connection.flushSoon();
  }

  protected override onEnd(): void {
    super.onEnd();
    this.#end?.();
    this.#end = undefined;
  }
}
