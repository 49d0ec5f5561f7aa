/** Makes single attempts against receivers on this machine that behave as a test says. */
import type { Socket } from 'node:net';
import { createAddressGuard } from '../../../src/webhooks/addresses/address-guard.ts';
import type { NameResolver } from '../../../src/webhooks/addresses/name-resolver.ts';
import { createSender, type Sender, type SenderOptions } from '../../../src/webhooks/delivery/send/send.ts';
import type { SendReport } from '../../../src/webhooks/delivery/send/send-report.ts';
import { onRequest, startRawReceiver } from '../network/raw-receiver.ts';

const LOOPBACK = ['127.0.0.0/8'];
export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

interface Setting {
  readonly allowCidrs?: readonly string[];
  readonly resolver?: NameResolver;
  readonly allowHosts?: readonly string[];
  readonly hostsFile?: string;
  readonly ca?: readonly string[];
  readonly onDoubt?: SenderOptions['onDoubt'];
  readonly maxConnections?: number;
}

export interface TestSender extends Sender, AsyncDisposable {
  /** Acts as if connections had been idle long enough to be reused. */
  letRest(): void;
}

export function openSender({ allowCidrs = LOOPBACK, ca, onDoubt, maxConnections, ...names }: Setting = {}): TestSender {
  const guard = createAddressGuard({ allowCidrs, ...names });
  let clockMs = 0;
  const times = { nowMs: Date.now, monotonicMs: () => clockMs };
  const sender = createSender({ guard, ...times, ca, maxConnections, ...(onDoubt && { onDoubt }) });
  const letRest = () => {
    clockMs += 1000;
  };
  return Object.assign(sender, { letRest, [Symbol.asyncDispose]: () => sender.close() });
}

/** A deadline that no slow machine reaches, unless the test is about the deadline. */
export const deliveryTo = (url: string, deadlineMs = 120_000) => ({
  deliveryId: 1,
  url,
  headers: { 'Content-Type': 'application/json', 'X-Test': 'yes' },
  body: Buffer.from('{"a":1}'),
  deadlineMs,
});

/** Makes one attempt against a receiver that handles the connection as the test says. */
export async function sendTo(onConnection: (socket: Socket) => void, deadlineMs?: number): Promise<SendReport> {
  await using receiver = await startRawReceiver(onConnection);
  await using sender = openSender();
  return await sender.send(deliveryTo(receiver.url, deadlineMs));
}

export const answerWith = (text: string | Buffer) => (socket: Socket) =>
  onRequest(socket, () => void socket.write(text));
