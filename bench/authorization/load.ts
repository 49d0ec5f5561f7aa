/** A cheap client: one request at a time on each of a few keep-alive connections, bodies by Content-Length. */
import { connect, type Socket } from 'node:net';

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

export interface Lane {
  send(request: string): Promise<HttpAnswer>;
  close(): void;
}

export async function openLane(port: number): Promise<Lane> {
  const socket: Socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true).setEncoding('latin1');
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  let buffered = '';
  let settle: { resolve: (answer: HttpAnswer) => void; reject: (error: Error) => void } | undefined;
  socket.on('data', (chunk) => {
    buffered += chunk;
    const answer = parseAnswer(buffered);
    if (answer === undefined) return;
    buffered = '';
    settle?.resolve(answer);
  });
  socket.on('close', () => settle?.reject(new Error('The server closed the connection')));
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        settle = { resolve, reject };
        socket.write(request);
      }),
    close: () => socket.destroy(),
  };
}

function parseAnswer(text: string): HttpAnswer | undefined {
  const bodyAt = text.indexOf('\r\n\r\n') + 4;
  if (bodyAt < 4) return undefined;
  const head = text.slice(0, bodyAt);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`An answer without Content-Length: ${head}`);
  if (text.length < bodyAt + Number(length)) return undefined;
  return { status: Number(head.slice(9, 12)), body: text.slice(bodyAt) };
}

export function formatPost(path: string, fields: Readonly<Record<string, string>>): string {
  const body = new URLSearchParams(fields).toString();
  return `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

export function formatGet(path: string, token: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`;
}
