/** Events of all reports that may wait for their commit. More would fill the memory, and each garbage collection would copy them. */
export const MAX_EVENTS = 512;
const MIN_PER_REPORT = 2;

/** Divides the events that may wait for their commit evenly among the reports that have any under way. */
export class EventQueueShare {
  #reports = 0;

  /** How many events one report may have waiting while those before them are committed. */
  get share(): number {
    return Math.max(MIN_PER_REPORT, Math.floor(MAX_EVENTS / Math.max(1, this.#reports)));
  }

  /** A report has events under way. */
  enter(): void {
    this.#reports += 1;
  }

  leave(): void {
    this.#reports -= 1;
  }
}
