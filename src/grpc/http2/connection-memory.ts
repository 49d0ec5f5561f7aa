/** Counts the bytes that a connection keeps, and grants its client flow-control windows accordingly. */
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
  /** Ends the call that keeps the most bytes, and returns false when that frees nothing. */
  readonly shed: () => boolean;
  /** Ends the connection: its client does not read. */
  readonly close: () => void;
  /** Incomplete requests take all memory of this connection. */
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
  /** Bytes of requests that are not used yet. */
  readonly requests: MemoryAccount;
  /** Bytes of answers that wait for a window. */
  readonly #answers: MemoryAccount;
  /** Bytes that the socket has not sent. */
  readonly #unsent: MemoryAccount;
  /** Bytes of the incomplete header block. */
  readonly #headerBlock: MemoryAccount;
  /** Bytes of requests that a method works on. */
  readonly running: SharedMemory;
  /** Bytes of calls that outlive the read that brought them. */
  readonly #openCalls: MemoryAccount;
  readonly callQueue: CallQueue;
  /** The receive window, for bytes of requests. */
  readonly blocks: BlockPool;
  /** Reservations for messages larger than the first window of their stream. */
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

  /** Lets the client send more if the window allows. Called after bytes were used. */
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

  /** Counts that the answers waiting for a window have grown or shrunk. */
  countWaiting(change: number): void {
    if (change > 0) this.#answers.take(change);
    if (change >= 0) return;
    this.#answers.give(-change);
    this.callQueue.resume();
  }

  /** Called when the socket has taken or sent bytes, or is closed. Ends the connection if there is no room for its unsent bytes. */
  countUnsent({ destroyed, writableLength }: Pick<Socket, 'destroyed' | 'writableLength'>): void {
    const change = (destroyed ? 0 : writableLength) - this.#unsent.bytes;
    if (change > 0) this.#unsent.take(change);
    if (change >= 0) return;
    this.#unsent.give(-change);
    this.callQueue.resume();
  }

  /** Counts the kept bytes of a header block. Ends the connection if there is no room for them. */
  countHeaderBlock(bytes: number): void {
    const change = bytes - this.#headerBlock.bytes;
    if (change > 0) this.#headerBlock.take(change);
    else this.#headerBlock.give(-change);
  }

  /** Counts a call that outlives the read that brought it. Ends the call if there is no room for it. */
  openCall(call: CountedCall, bytes: number): void {
    call.openBytes = bytes;
    this.#openCalls.take(bytes);
  }

  endCall(call: CountedCall): void {
    this.#openCalls.give(call.openBytes);
  }
}

/** Reserves bytes that only the end of the connection frees. */
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
