/**
 * Declares the contract of a background part: start returns at once, stop waits and may be called twice. The program starts and
 * stops all of them as a list.
 */
export interface Worker {
  readonly name: string;
  /** Returns at once; the work goes on in the background. */
  start(): void;
  /** Resolves when the work has ended. May be called twice, and before `start`. */
  stop(): Promise<void>;
}
