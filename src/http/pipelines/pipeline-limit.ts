/**
 * Limits how many requests a connection sends ahead of their answers, and how many of them begin in a turn of the event loop.
 * Node parses all bytes of a socket in one turn and calls back for each request: 4 MB of `GET /healthz` stopped all calls for
 * half a second, without a token. Few requests of a connection begin before their answers are taken: no limit counts answers
 * that wait after an unread one.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createNetworkTurns } from '../../connections/network-turns.ts';

/** The most requests of one connection that wait for their answers. Clients that pipeline send fewer. */
const MAX_UNANSWERED = 32;
/** After this many requests parsed in a turn, about 30 µs each, no connection may pipeline requests in that turn. */
const MAX_PARSED_IN_A_TURN = 256;
/** How many requests begin in a turn of the event loop; each takes 50 to 100 µs. */
const BEGUN_IN_A_TURN = 16;
/** How many requests of one connection are handled at the same time. The next one begins when the client has taken an answer. */
const MAX_BEGUN = 4;
/** Node treats this result as an error of the parser, which stops before the next request. */
const STOP_PARSING = -1;

/** Handles the request now or in a later turn of the event loop, or not at all when its client is gone by then. */
export type BeginRequest = (incoming: IncomingMessage, outgoing: ServerResponse, handle: () => void) => void;

/** Must be called before a connection is accepted. `readNetwork` names the network whose connections share turns. */
export function limitPipelines(server: Server, readNetwork: (address: string | undefined) => string): BeginRequest {
  const pipelines = new WeakMap<Socket, Pipeline>();
  const turn = createTurn();
  server.on('connection', (socket) =>
    pipelines.set(socket, new Pipeline(socket, readNetwork(socket.remoteAddress), turn)),
  );
  server.on('request', ({ socket }, outgoing) => pipelines.get(socket)?.add(outgoing));
  server.on('checkExpectation', ({ socket }, outgoing) => {
    pipelines.get(socket)?.add(outgoing);
    outgoing.writeHead(417).end();
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (pipelines.get(socket)?.isStopped !== true) refuseRequest(error, socket);
  });
  return ({ socket }, outgoing, handle) => {
    const pipeline = pipelines.get(socket);
    if (pipeline === undefined) handle();
    else pipeline.begin(outgoing, () => turn.begin(pipeline.network, handle, () => socket.destroyed));
  };
}

interface ParsedSocket extends Socket {
  /** An undocumented field of Node: called with the head of a request. The parser continues unless the result is a number. */
  readonly parser?: { onIncoming?: ((incoming: IncomingMessage, keepsAlive: boolean) => number) | null } | null;
  /** Undocumented too: the answer that is being written. */
  readonly _httpMessage?: ServerResponse | null;
}

/** The requests of one connection that are not answered. */
class Pipeline {
  readonly network: string;
  readonly #socket: Socket;
  readonly #turn: Turn;
  #unanswered = 0;
  #last: ServerResponse | undefined;
  #begun = 0;
  /** Functions that begin the pipelined requests. */
  readonly #waiting: (() => void)[] = [];
  #isStopped = false;

  constructor(socket: ParsedSocket, network: string, turn: Turn) {
    this.#socket = socket;
    this.network = network;
    this.#turn = turn;
    const { parser } = socket;
    const onIncoming = parser?.onIncoming;
    if (parser == null || onIncoming == null) return;
    parser.onIncoming = (incoming, keepsAlive) => {
      this.#turn.countParsed();
      return this.#isFull ? this.#stop() : onIncoming(incoming, keepsAlive);
    };
  }

  /** Whether reading has stopped: the connection ends with the answers to earlier requests. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  add(outgoing: ServerResponse): void {
    this.#unanswered += 1;
    this.#last = outgoing;
    outgoing.once('close', () => {
      this.#unanswered -= 1;
      if (this.#last === outgoing) this.#last = undefined;
      if (this.#isStopped && this.#unanswered === 0) this.#socket.destroySoon();
    });
  }

  /** Begins a request when fewer than the limit of its connection are begun and unanswered. */
  begin(outgoing: ServerResponse, start: () => void): void {
    outgoing.once('close', () => {
      this.#begun -= 1;
      this.#beginNext();
    });
    this.#waiting.push(start);
    this.#beginNext();
  }

  #beginNext(): void {
    if (this.#begun >= MAX_BEGUN || this.#waiting.length === 0) return;
    this.#begun += 1;
    this.#waiting.shift()!();
  }

  get #isFull(): boolean {
    return this.#isStopped || this.#unanswered >= (this.#turn.isParsedFull ? 1 : MAX_UNANSWERED);
  }

  /** RFC 9112, section 9.3.2: the client sends unanswered requests again. */
  #stop(): number {
    this.#isStopped = true;
    if (this.#last !== undefined) this.#last.shouldKeepAlive = false;
    this.#socket.pause();
    return STOP_PARSING;
  }
}

interface Turn {
  readonly isParsedFull: boolean;
  countParsed(): void;
  begin(network: string, handle: () => void, hasGone: () => boolean): void;
}

/** The requests that begin in this turn of the event loop, and those that wait for a later one. */
function createTurn(): Turn {
  const turns = createNetworkTurns(BEGUN_IN_A_TURN);
  let [parsed, begun, waiting] = [0, 0, 0];
  let isScheduled = false;

  function endLater(): void {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      [parsed, begun, isScheduled] = [0, 0, false];
    });
  }

  return {
    get isParsedFull() {
      return parsed > MAX_PARSED_IN_A_TURN;
    },
    countParsed() {
      parsed += 1;
      endLater();
    },
    begin(network, handle, hasGone) {
      endLater();
      if (waiting === 0 && begun < BEGUN_IN_A_TURN) {
        begun += 1;
        handle();
        return;
      }
      waiting += 1;
      // Requests whose client has left are counted down too.
      const leave = (): boolean => {
        waiting -= 1;
        return true;
      };
      turns.wait(
        network,
        () => leave() && handle(),
        () => hasGone() && leave(),
      );
    },
  };
}

/** The answer that Node gives when nothing listens for these errors. */
const REFUSALS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

function refuseRequest({ code = '' }: NodeJS.ErrnoException, socket: ParsedSocket): void {
  // Writes no answer into one that is under way.
  if (socket.writable && socket._httpMessage?.headersSent !== true)
    socket.write(`HTTP/1.1 ${REFUSALS[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  socket.destroySoon();
}
