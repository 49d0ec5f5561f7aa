/** Runs a call of many messages and one answer: hands each message to its collector while the collector has room. */
import { COST, costOfBytes } from '../budget/turns.ts';
import { freeExpanded } from '../protocol/decompressor.ts';
import { type FramedMessage, MESSAGE_HEAD_BYTES } from '../protocol/message-reader.ts';
import { BaseCall, type CallDependencies } from './base-call.ts';
import type { EndlessCall } from './endless-call.ts';
import type { GrpcClientStreamMethod, MessageCollector } from './service.ts';

/** The caller may send as many bytes again as the collector has used. A call allocates nothing for its wait. */
export class CollectingCall extends BaseCall implements EndlessCall {
  previous: EndlessCall | undefined;
  next: EndlessCall | undefined;
  readonly #method: GrpcClientStreamMethod;
  /** Undefined until the caller is checked, and after the collector is closed. */
  #collector: MessageCollector | undefined;
  #isLast = false;
  #isStopped = false;
  #isReset = false;
  /** The next message is incomplete. */
  #needsData = false;
  /** The next message waits for its share of a turn, or is being decompressed. */
  #isBusy = false;
  /** The next message has its share of a turn. */
  #hasShare = false;
  /** The next message once decompressed. It has no room yet: messages that wait for decompression must not take the room of others. */
  #expanded: Buffer | undefined;
  #isFinishing = false;

  constructor(dependencies: CallDependencies, method: GrpcClientStreamMethod) {
    super(dependencies);
    this.#method = method;
  }

  override get isUnfinished(): boolean {
    return this.#needsData;
  }

  override onData(bytes: Buffer, isLast: boolean): void {
    if (this.isEnded || this.#isStopped) return;
    this.keep(bytes);
    this.#isLast = isLast;
    this.#needsData = false;
    this.#takeAll();
  }

  override onReset(): void {
    this.#isReset = true;
    super.onReset();
  }

  /** The server drains: no more messages, and the collector is asked to end. */
  stop(): void {
    this.#isStopped = true;
    this.#needsData = false;
    this.#takeAll();
  }

  /** Starts the method once the caller is checked. */
  run(): void {
    if (this.isEnded) return;
    this.dependencies.stream.connection.share.spend(COST.stream);
    this.startDeadline();
    const { admission } = this;
    if (admission === undefined) this.#open();
    // If the caller is refused, the call has failed already.
    else void admission.then(this.#open, () => {}).catch((error: unknown) => this.fail(error));
  }

  readonly #open = (): void => {
    if (this.isEnded) return;
    this.#collector = this.#method.open(this, this.#takeAll);
    this.#takeAll();
  };

  /** Takes complete messages until it has to wait. */
  readonly #takeAll = (): void => {
    try {
      while (this.#takeNext());
    } catch (error) {
      this.fail(error);
    }
    // The collector still got the messages for which it had room when the caller left.
    if (this.isEnded && !this.#isBusy) this.#close();
  };

  readonly #goOn = (): void => {
    this.#isBusy = false;
    this.#takeAll();
  };

  /** Returns false when it has to wait, or has taken the last one. */
  #takeNext(): boolean {
    const collector = this.#collector;
    if (collector === undefined || this.#isBusy || this.#needsData || this.#isFinishing) return false;
    if (this.#expanded !== undefined) return this.#takeExpanded(collector, this.#expanded);
    const bytes = this.request?.nextBytes ?? 0;
    if (bytes === 0) {
      if (this.#isLast || this.#isStopped) this.#finish(collector);
      else this.#waitForData();
      return false;
    }
    this.stopMessageTimer();
    if (!this.#takeShare(bytes)) return false;
    if (this.request!.isNextCompressed) {
      this.#hasShare = false;
      void this.#expand(this.request!.take()!);
      return false;
    }
    if (!collector.reserve()) return false;
    this.#hasShare = false;
    collector.take(this.request!.take()!.bytes);
    this.#finishMessage(bytes);
    return true;
  }

  #waitForData(): void {
    if (this.isEnded) return;
    this.#needsData = true;
    this.reserveRoom();
  }

  /** Returns false when the message has to wait for a later turn. */
  #takeShare(bytes: number): boolean {
    if (this.#hasShare) return true;
    this.#hasShare = true;
    const turn = this.dependencies.stream.connection.share.take(COST.message + costOfBytes(bytes));
    if (turn === undefined) return true;
    this.#isBusy = true;
    void turn.then(this.#goOn);
    return false;
  }

  /** The decompressed message counts as memory of the stream while it waits for room. */
  async #expand(message: FramedMessage): Promise<void> {
    this.#isBusy = true;
    try {
      const bytes = await this.decompress(message);
      const { stream } = this.dependencies;
      stream.connection.share.spend(costOfBytes(bytes.length));
      this.#finishMessage(MESSAGE_HEAD_BYTES + message.bytes.length);
      if (this.#collector === undefined) return;
      stream.keep(bytes.length);
      this.#expanded = bytes;
      this.#goOn();
    } catch (error) {
      this.#isBusy = false;
      this.fail(error);
      this.#close();
    }
  }

  /** Returns false when there is no room for it. */
  #takeExpanded(collector: MessageCollector, bytes: Buffer): boolean {
    if (!collector.reserve()) return false;
    this.#dropExpanded();
    collector.take(bytes);
    if (this.#method.keepsNoBytes) freeExpanded(bytes);
    return true;
  }

  #dropExpanded(): void {
    if (this.#expanded === undefined) return;
    this.dependencies.stream.release(this.#expanded.length);
    this.#expanded = undefined;
  }

  /** The collector has used the message: the caller may send as many bytes again. */
  #finishMessage(bytes: number): void {
    this.dependencies.stream.connection.progress.mark();
    this.request?.release(bytes);
    this.recycleMessage();
  }

  #finish(collector: MessageCollector): void {
    this.#isFinishing = true;
    this.stopMessageTimer();
    if (this.#isLast && !this.isEnded) this.request?.checkNothingLeft();
    collector
      .finish()
      .then((answer) => {
        if (this.isEnded) return;
        this.sendMessage(answer);
        this.succeed();
        this.#close();
      })
      .catch((error: unknown) => this.fail(error));
  }

  #close(): void {
    this.#collector?.close();
    this.#collector = undefined;
    this.#dropExpanded();
    this.request?.drop();
  }

  protected override onEnd(): void {
    // After the caller left, messages that wait for their share are still taken.
    if (!this.#isReset || !this.#isBusy) this.#close();
  }
}
