/** Counts the bytes that a connection keeps, and grants its client windows accordingly. */
import type { Socket } from 'node:net';
import type { NetworkUse } from '../../connections/network-use.ts';
import type { BlockPool } from '../../memory/block-pool.ts';
import { CallQueue } from '../budget/call-queue.ts';
import type {
  LargeMessages,
  MemoryReservation,
  ReservationOwner,
  ReservationRequest,
} from '../budget/large-messages.ts';
import type { MemoryAccount, MemoryBudget } from '../budget/memory-budget.ts';
import { SharedMemory } from '../budget/shared-memory.ts';
import type { Share } from '../budget/turns.ts';
import { ReceiveWindow } from './receive-window.ts';

/** The share of the budget that the requests of one connection may take. */
const MAX_REQUEST_SHARE = 0.25;
export interface ConnectionMemoryDependencies {
  readonly budget: MemoryBudget;
  readonly largeMessages: LargeMessages;
  readonly network: NetworkUse;
  readonly share: Share;
  /** Ends the call that keeps most, and returns false when that frees nothing. */
  readonly shed: () => boolean;
  /** Ends the connection: its client does not read. */
  readonly close: () => void;
  /** All memory of this connection is taken by requests of which no one is complete. */
  readonly shedUnfinished: () => void;
  /** Lets the client send this many more bytes. */
  readonly grant: (bytes: number) => void;
}

/** A call whose memory the connection counts. */
export interface CountedCall {
  openBytes: number;
}

export class ConnectionMemory {
  readonly network: NetworkUse;
  readonly receiveWindow = new ReceiveWindow();
  /** Requests that were not used yet. */
  readonly requests: MemoryAccount;
  /** Answers that wait for a window. */
  readonly #answers: MemoryAccount;
  /** Bytes that the socket has not sent. */
  readonly #unsent: MemoryAccount;
  /** The header block that is not whole. */
  readonly #headerBlock: MemoryAccount;
  /** Requests that a method works on. */
  readonly running: SharedMemory;
  /** Calls that outlive the read that they came with. */
  readonly #openCalls: MemoryAccount;
  readonly callQueue: CallQueue;
  /** For bytes of requests. */
  readonly blocks: BlockPool;
  /** For messages that are larger than the first window of their stream. */
  reservedBytes = 0;
  reservationQueue: ReservationOwner['reservationQueue'];
  readonly #dependencies: ConnectionMemoryDependencies;

  constructor(dependencies: ConnectionMemoryDependencies) {
    const { budget, network, share, shed, close } = dependencies;
    this.#dependencies = dependencies;
    this.network = network;
    this.blocks = budget.blocks;
    const owner = { network, shed };
    this.requests = budget.createAccount(owner);
    this.#answers = budget.createAccount(owner);
    this.#unsent = createLastingAccount(budget, network, close);
    this.#headerBlock = createLastingAccount(budget, network, close);
    this.running = new SharedMemory(budget.createAccount());
    this.#openCalls = budget.createAccount(owner);
    const readBytes = (): number => this.#answers.bytes + this.#unsent.bytes + this.running.bytes;
    this.callQueue = new CallQueue({ readBytes, share });
  }

  /** Bytes of answers that wait for a window. */
  get waitingBytes(): number {
    return this.#answers.bytes;
  }

  /** Lets the client send more when it may: after bytes were used. */
  grantWindow(): void {
    const { requests, reservedBytes } = this;
    const maxBytes = MAX_REQUEST_SHARE * this.#dependencies.budget.maxBytes;
    const kept = { bytes: requests.bytes, maxBytes, reservedBytes };
    const credit = this.receiveWindow.takeCredit(kept);
    if (credit > 0) this.#dependencies.grant(credit);
    if (this.receiveWindow.isShut(kept)) this.#dependencies.shedUnfinished();
  }

  reserve(request: Omit<ReservationRequest, 'owner'>): MemoryReservation {
    return this.#dependencies.largeMessages.reserve({
      ...request,
      owner: this,
      onGranted: () => {
        request.onGranted();
        this.grantWindow();
      },
    });
  }

  /** The answers that wait for a window have become more, or less. */
  countWaiting(change: number): void {
    if (change > 0) this.#answers.take(change);
    if (change >= 0) return;
    this.#answers.give(-change);
    this.callQueue.resume();
  }

  /** The socket has taken or sent bytes, or is closed. May end the connection, when there is no room for what is not sent. */
  countUnsent({ destroyed, writableLength }: Pick<Socket, 'destroyed' | 'writableLength'>): void {
    const change = (destroyed ? 0 : writableLength) - this.#unsent.bytes;
    if (change > 0) this.#unsent.take(change);
    if (change >= 0) return;
    this.#unsent.give(-change);
    this.callQueue.resume();
  }

  /** These bytes of a header block are kept now. May end the connection, when there is no room for them. */
  countHeaderBlock(bytes: number): void {
    const change = bytes - this.#headerBlock.bytes;
    if (change > 0) this.#headerBlock.take(change);
    else this.#headerBlock.give(-change);
  }

  /** The call is not over in the read that it came with. May end it, when there is no room for it. */
  openCall(call: CountedCall, bytes: number): void {
    call.openBytes = bytes;
    this.#openCalls.take(bytes);
  }

  endCall(call: CountedCall): void {
    this.#openCalls.give(call.openBytes);
  }
}

/** For bytes that only the end of the connection frees. */
function createLastingAccount(budget: MemoryBudget, network: NetworkUse, close: () => void): MemoryAccount {
  const shed = (): boolean => {
    const { bytes } = account;
    close();
    account.give(bytes);
    return bytes > 0;
  };
  const account: MemoryAccount = budget.createAccount({ network, shed });
  return account;
}
