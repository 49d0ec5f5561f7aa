import { ConnectionError, ERROR } from './frames.ts';

/** Frames a second that cost us work and bring no call forward: resets, pings, settings. */
const MAX_PER_SECOND = 5000;

/** Ends a connection that is busy with anything but calls (for example CVE-2023-44487, "rapid reset"). */
export class NuisanceLimit {
  readonly #monotonicMs: () => number;
  #count = 0;
  #secondEndMs = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  count(): void {
    const nowMs = this.#monotonicMs();
    if (nowMs >= this.#secondEndMs) {
      this.#secondEndMs = nowMs + 1000;
      this.#count = 0;
    }
    this.#count += 1;
    if (this.#count > MAX_PER_SECOND) throw new ConnectionError(ERROR.enhanceYourCalm, 'too many resets');
  }
}
