/** Ends a call whose message does not become whole in time, whatever its deadline. */
import { Failure } from '../../errors.ts';

/** How long one message may take, whatever the deadline of the call: an unfinished message must not occupy memory for long. */
const MESSAGE_MS = 60_000;

/** Starts the time limit of a message that has begun. */
export class MessageTimer {
  readonly #onLate: (failure: Failure) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onLate: (failure: Failure) => void) {
    this.#onLate = onLate;
  }

  /** Resumes if a message has begun. */
  begin(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      const seconds = MESSAGE_MS / 1000;
      this.#onLate(new Failure('deadline', `Cannot answer: the message did not arrive within ${seconds} s`));
    }, MESSAGE_MS).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
