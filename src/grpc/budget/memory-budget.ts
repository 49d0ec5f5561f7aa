/**
 * One budget for the bytes that the transport keeps: requests that are not used yet and answers that wait for a window.
 * When it is exceeded, calls of the connection that keeps most are ended until it is not, so that those who keep little
 * do not notice.
 */
export class MemoryBudget {
  readonly maxBytes: number;
  #bytes = 0;
  readonly #accounts = new Set<MemoryAccount>();

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `shed` ends the call that keeps most, and returns false when there is no such call. */
  createAccount(shed: () => boolean): MemoryAccount {
    return new MemoryAccount(shed, (account, change) => this.#change(account, change));
  }

  #change(account: MemoryAccount, change: number): void {
    this.#bytes += change;
    if (account.bytes > 0) this.#accounts.add(account);
    else this.#accounts.delete(account);
    if (change > 0 && this.#bytes > this.maxBytes) this.#shed();
  }

  #shed(): void {
    const candidates = new Set(this.#accounts);
    while (this.#bytes > this.maxBytes && candidates.size > 0) {
      const largest = [...candidates].reduce((a, b) => (b.bytes > a.bytes ? b : a));
      if (!largest.shed()) candidates.delete(largest);
    }
  }
}

/** What one connection keeps of one kind. */
export class MemoryAccount {
  readonly shed: () => boolean;
  readonly #onChange: (account: MemoryAccount, change: number) => void;
  #bytes = 0;

  constructor(shed: () => boolean, onChange: (account: MemoryAccount, change: number) => void) {
    this.shed = shed;
    this.#onChange = onChange;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(bytes: number): void {
    this.#bytes += bytes;
    this.#onChange(this, bytes);
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
    this.#onChange(this, -bytes);
  }
}
