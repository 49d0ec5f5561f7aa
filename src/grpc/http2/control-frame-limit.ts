import { ConnectionError, ERROR } from './frames.ts';

/** Frames a second that cost work and bring no call forward. */
const MAX_PER_SECOND = 5000;
/** Clients open windows in answer to data: twice for each frame, for the stream and for the connection. */
const UPDATES_PER_DATA_FRAME = 2;

/**
 * Ends a connection that is busy with anything but calls: CVE-2023-44487 (resets by the client), CVE-2025-8671 (resets
 * that the client provokes), CVE-2019-9512 and 9515 (pings, settings), CVE-2019-9518 (empty data), and the same with
 * acknowledgements, priorities, window updates and unknown frames.
 */
export class ControlFrameLimit {
  readonly #monotonicMs: () => number;
  #count = 0;
  #secondEndMs = 0;
  #expectedUpdates = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Throws when there were too many in this second. */
  count(frames = 1): void {
    const nowMs = this.#monotonicMs();
    if (nowMs >= this.#secondEndMs) {
      this.#secondEndMs = nowMs + 1000;
      this.#count = 0;
    }
    this.#count += frames;
    if (this.#count > MAX_PER_SECOND) throw new ConnectionError(ERROR.enhanceYourCalm, 'too many control frames');
  }

  /** Counts a window update only if no data was sent that it could answer. */
  countUpdate(): void {
    if (this.#expectedUpdates > 0) this.#expectedUpdates -= 1;
    else this.count();
  }

  noteDataSent(): void {
    this.#expectedUpdates += UPDATES_PER_DATA_FRAME;
  }
}
