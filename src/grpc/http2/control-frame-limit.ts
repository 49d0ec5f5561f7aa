/** Ends a connection that floods: resets (rapid reset), pings, settings, empty data, window updates. */
import { ConnectionError, ERROR } from '../frames/frames.ts';

/** Frames a second that cost work and bring no call forward. */
const MAX_PER_SECOND = 5000;
/**
 * In answer to data, clients open windows, of the stream and of the connection, and ping to learn the bandwidth (gRPC's
 * BDP probes): grpc-go as often as an answer takes, which on one machine is more than the limit.
 */
const EXPECTED_PER_DATA_FRAME = 3;
/** Expected control frames do not accumulate beyond this, however many calls there were. */
const MAX_EXPECTED = 20_000;

/**
 * Ends a connection that is busy with anything but calls: CVE-2023-44487 (resets by the client), CVE-2025-8671 (resets
 * that the client provokes), CVE-2019-9512 and 9515 (pings, settings), CVE-2019-9518 (empty data), and the same with
 * acknowledgements, priorities, window updates and unknown frames.
 */
export class ControlFrameLimit {
  readonly #monotonicMs: () => number;
  #count = 0;
  #secondEndMs = 0;
  #expected = 0;

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

  /** Counts a window update or a ping only if no data was sent that it could answer. */
  countReaction(): void {
    if (this.#expected > 0) this.#expected -= 1;
    else this.count();
  }

  /** Each frame of data that was sent allows the client a few window updates and pings. */
  countDataFrame(): void {
    if (this.#expected < MAX_EXPECTED) this.#expected += EXPECTED_PER_DATA_FRAME;
  }
}
