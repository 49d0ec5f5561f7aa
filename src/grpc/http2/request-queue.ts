/** Messages of a streaming call between the wire and its reader. */
export class RequestQueue<T> {
  readonly #items: T[] = [];
  #isEnded = false;
  #failure: unknown;
  #wake: (() => void) | undefined;

  get length(): number {
    return this.#items.length;
  }

  push(item: T): void {
    if (this.#isEnded) return;
    this.#items.push(item);
    this.#wake?.();
  }

  /** No more after those that are there. */
  end(): void {
    this.#isEnded = true;
    this.#wake?.();
  }

  fail(error: unknown): void {
    this.#failure ??= error;
    this.end();
  }

  /** The next item, or undefined at the end. */
  async next(): Promise<T | undefined> {
    while (this.#items.length === 0) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#items.shift();
  }
}
