import type { Socket } from 'node:net';
import type { Server } from 'node:tls';

/**
 * TLS connections whose handshake is under way. Each takes a file descriptor, for ten seconds if it sends nothing. Beyond the
 * limit the oldest is closed: a real client needs only milliseconds.
 */
export class Handshakes {
  readonly #max: number;
  readonly #sockets = new Map<string, Socket>();

  constructor(max: number) {
    this.#max = max;
  }

  watch(server: Server): void {
    server.on('connection', (socket) => this.#begin(socket));
    server.on('secureConnection', (socket) => this.#sockets.delete(nameOf(socket)));
  }

  destroyAll(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  #begin(socket: Socket): void {
    const name = nameOf(socket);
    const [oldest] = this.#sockets.values();
    if (this.#sockets.size >= this.#max) oldest?.destroy();
    this.#sockets.set(name, socket);
    socket.once('close', () => {
      if (this.#sockets.get(name) === socket) this.#sockets.delete(name);
    });
  }
}

function nameOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
