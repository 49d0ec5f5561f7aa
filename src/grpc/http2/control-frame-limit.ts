/** Ends a connection that floods the server with resets (rapid reset), pings, settings, empty data or window updates. */
import { ConnectionError, ERROR } from '../frames/frames.ts';

/** The most frames a second that cost work and advance no call. */
const MAX_PER_SECOND = 5000;
/**
 * In answer to data, clients open windows of the stream and the connection, and ping to measure the bandwidth (gRPC's BDP
 * probes). grpc-go does so once a round trip, which on one machine is more often than the limit.
 */
const EXPECTED_PER_DATA_FRAME = 3;
/** Expected control frames do not accumulate beyond this, however many calls there were. */
const MAX_EXPECTED = 20_000;

/**
 * Ends a connection whose frames advance no call: CVE-2023-44487 (resets by the client), CVE-2025-8671 (resets
 * that the client provokes), CVE-2019-9512 and 9515 (pings, settings), CVE-2019-9518 (empty data), and floods of
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
