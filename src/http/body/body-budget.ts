/**
 * Limits the memory of unread request bodies, and decides which body is dropped when it is used up (503). Bytes are counted
 * as they arrive, not as a client announces them. When the budget is used up, an unfinished body is dropped, in this order:
 * 1. of a network that has more than half of the budget while others need room, so that no network keeps out the others;
 * 2. of a sender who is not known yet, or strangers would keep out callers whose bodies take long to arrive;
 * 3. of the network that holds most bytes.
 * Among these, the oldest is dropped: a client that sends without a pause would have finished long before.
 *
 * Bytes are copied into pages, which are reused once their body is closed or dropped: under attack hundreds of megabytes a
 * second arrive, and as garbage they would take as much memory again as the budget. The first bytes, and a body larger than the
 * budget, are in ordinary memory.
 */
import { createNetworkTurns } from '../../connections/network-turns.ts';
import { Failure } from '../../errors.ts';
import { freeMemory } from '../../memory/free-memory.ts';
import type { CountGarbage } from '../../memory/garbage.ts';
import { type Linked, LinkedQueue } from '../../memory/linked-queue.ts';
import { PagedBytes, PagePool } from './body-pages.ts';

export interface BodyBudget {
  /** Starts to count a body of this network. `giveWay` is called at most once, when the bytes of the body are dropped. */
  open(network: string, giveWay: (refusal: Failure) => void): CountedBody;
}

export interface CountedBody {
  /** Copies arrived bytes, unless the body was dropped, and frees their memory. May drop this body or others. */
  add(bytes: Uint8Array): void;
  /** Calls back in a later turn of the event loop, when more of the body may be read. */
  waitForTurn(goOn: () => void): void;
  /** Marks a body whose sender is unknown until it is complete: it is dropped before bodies of authenticated callers. */
  giveWayFirst(): void;
  /** Must be called when the body is complete: it can no longer be dropped. Returns its bytes, which are not overwritten. */
  complete(): Buffer;
  /** Must be called when the body is no longer in memory. */
  close(): void;
}

/** 8 bodies of 8 MiB, each as much as 10,000 rows of llm-d. */
const MAX_BYTES = 8 * 8 * 1024 * 1024;
/** The part that one network may have while others need room. */
const NETWORK_SHARE = 0.5;
/** Smaller bodies are not counted: one on each of a thousand connections takes 16 MiB together. */
const SMALL_BYTES = 16 * 1024;

/**
 * How many reads of bodies, of 64 KiB each, one turn of the event loop does. Hundreds of bodies would bring tens of megabytes, and all
 * other calls would wait for copies and for the garbage collector.
 */
const READS_IN_A_TURN = 4;

/** `contentLength` is undefined for a chunked body. */
export function isCounted(contentLength: string | undefined): boolean {
  return contentLength === undefined || Number(contentLength) > SMALL_BYTES;
}

export interface BodyBudgetOptions {
  /** 64 MiB, eight of the largest bodies, unless given. */
  readonly maxBytes?: number | undefined;
  readonly countGarbage?: CountGarbage | undefined;
}

/** A body larger than the whole budget is accepted while no other body arrives. */
export function createBodyBudget({ maxBytes = MAX_BYTES, countGarbage }: BodyBudgetOptions = {}): BodyBudget {
  const pool = new PagePool(maxBytes);
  let usedBytes = 0;
  /** The oldest first. */
  const arriving = new LinkedQueue<OpenBody>();
  const networks = createNetworks();
  const turns = createNetworkTurns(READS_IN_A_TURN);

  function count(body: OpenBody, heldBytes: number): void {
    const change = heldBytes - body.heldBytes;
    body.heldBytes = heldBytes;
    body.network.heldBytes += change;
    usedBytes += change;
  }

  function drop(body: OpenBody): void {
    arriving.delete(body);
    count(body, 0);
    if (!body.isOpen) return;
    body.isOpen = false;
    networks.leave(body.network);
    body.bytes.clear();
  }

  function makeRoom(): void {
    while (usedBytes > maxBytes) {
      const body = findFirstToGo(arriving, maxBytes * NETWORK_SHARE);
      if (body === undefined || usedBytes === body.heldBytes) return;
      drop(body);
      body.giveWay(refuseFull());
    }
  }

  function keep(body: OpenBody, bytes: Uint8Array): void {
    body.bytes.push(bytes);
    count(body, body.bytes.heldBytes);
    makeRoom();
  }

  return {
    open(networkName, giveWay) {
      const kept = { network: networks.enter(networkName), bytes: new PagedBytes(pool), heldBytes: 0 };
      const links = { previous: undefined, next: undefined };
      const body: OpenBody = { ...kept, ...links, isOpen: true, givesWayFirst: false, giveWay };
      arriving.add(body);
      return {
        add(bytes) {
          if (body.isOpen) keep(body, bytes);
          if (!freeMemory(bytes)) countGarbage?.(bytes.length);
        },
        waitForTurn: (goOn) => turns.wait(networkName, goOn),
        giveWayFirst() {
          body.givesWayFirst = true;
        },
        complete() {
          arriving.delete(body);
          return body.bytes.take();
        },
        close: () => drop(body),
      };
    },
  };
}

/** The bodies of one network that are in memory. */
interface NetworkBodies {
  readonly name: string;
  heldBytes: number;
  bodies: number;
}

function createNetworks() {
  let networks = new Map<string, NetworkBodies>();
  return {
    /** One more body of the network. */
    enter(name: string): NetworkBodies {
      const network = networks.get(name) ?? { name, heldBytes: 0, bodies: 0 };
      networks.set(name, network);
      network.bodies += 1;
      return network;
    },
    leave(network: NetworkBodies): void {
      network.bodies -= 1;
      if (network.bodies === 0) networks.delete(network.name);
      // A new map: one whose entries come and go leaves garbage in old memory (`memory/id-table.ts`).
      if (networks.size === 0) networks = new Map();
    },
  };
}

interface OpenBody extends Linked<OpenBody> {
  readonly network: NetworkBodies;
  readonly bytes: PagedBytes;
  /** The memory of its block or pages, which is larger than the arrived bytes; it counts until the body is closed. */
  heldBytes: number;
  isOpen: boolean;
  givesWayFirst: boolean;
  readonly giveWay: (refusal: Failure) => void;
}

/** Returns the body that must be dropped first. Dropping one without bytes would free nothing. */
function findFirstToGo(arriving: Iterable<OpenBody>, networkBytes: number): OpenBody | undefined {
  let first: OpenBody | undefined;
  for (const body of arriving)
    if (body.heldBytes > 0 && (first === undefined || goesBefore(body, first, networkBytes))) first = body;
  return first;
}

function goesBefore(body: OpenBody, other: OpenBody, networkBytes: number): boolean {
  const [isOver, isOtherOver] = [body.network.heldBytes > networkBytes, other.network.heldBytes > networkBytes];
  if (isOver !== isOtherOver) return isOver;
  if (body.givesWayFirst !== other.givesWayFirst) return body.givesWayFirst;
  return body.network.heldBytes > other.network.heldBytes;
}

function refuseFull(): Failure {
  return new Failure('unavailable', 'Cannot read the request: too many large bodies arrive at once', {
    retryAfterSeconds: 1,
  });
}
