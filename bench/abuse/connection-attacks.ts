/** Connections that occupy a slot, that open and close all the time, or that speak another protocol. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { FlowClient } from '../../test/support/grpc/flow-client.ts';
import { DATA, frame, frameMessage, PING, PREFACE, RST, SETTINGS } from '../../test/support/grpc/http2-frames.ts';
import {
  type Attack,
  crowd,
  dial,
  forever,
  grpcPortOf,
  httpPortOf,
  open,
  send,
  type Target,
  uint32,
  WATCH,
} from './attack.ts';

const beginning = Buffer.concat([Buffer.from(PREFACE), frame(SETTINGS, 0, 0)]);
const ping = frame(PING, 0, 0, Buffer.alloc(8));
const httpHead =
  'POST /prediction.v1.PredictionService/Predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
/** One byte less than the program accepts. */
const largeBody = Buffer.alloc(1_048_575, ' ');

function storm(name: string, bytes: () => Buffer, port: (target: Target) => number = grpcPortOf): Attack {
  return {
    name,
    run: async (target) => {
      const one = (): Promise<void> =>
        forever(async () => {
          const socket = await dial(port(target));
          socket.resume();
          await send(socket, bytes());
          socket.destroy();
        });
      await Promise.all(Array.from({ length: 20 }, one));
    },
  };
}

function drip(name: string, count: number, first: string | Buffer, port: (target: Target) => number): Attack {
  return crowd(
    name,
    count,
    (socket) => {
      socket.write(first);
      const timer = setInterval(() => socket.write('a'), 500);
      socket.on('close', () => clearInterval(timer));
    },
    port,
  );
}

/** Opens 1,000 health watches and cancels 999, so that one remains in tables that have grown for a thousand. */
async function endMostCalls(client: FlowClient): Promise<void> {
  const ids = Array.from({ length: 1000 }, (_, index) => 2 * index + 1);
  client.send(...ids.flatMap((id) => [open(id, WATCH), frame(DATA, 1, id, frameMessage(Buffer.alloc(0)))]));
  client.send(...ids.slice(1).map((id) => frame(RST, 0, id, uint32(8))));
  await client.settle();
}

export const connectionAttacks: readonly Attack[] = [
  crowd('3,000 silent connections', 3000, () => {}),
  crowd('3,000 idle connections', 3000, (socket) => socket.write(beginning)),
  drip('500 connections that drip bytes', 500, Buffer.concat([beginning, ping.subarray(0, 1)]), grpcPortOf),
  crowd('half-open: 1,000 that end at once', 1000, (socket) => socket.end(beginning)),
  storm('connections that come and go', () => beginning),
  storm('connections that come and go, HTTP', () => Buffer.from('GET /healthz HTTP/1.1\r\n'), httpPortOf),
  storm('HTTP/1.1 on the gRPC port', () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')),
  storm('TLS on a plaintext port', () => Buffer.from('160301020001000001fc0303', 'hex')),
  storm('random bytes', () => randomBytes(20_000)),
  storm('random bytes after the preface', () => Buffer.concat([beginning, randomBytes(20_000)])),
  crowd('2,000 silent connections, HTTP', 2000, () => {}, httpPortOf),
  drip('slow heads, HTTP (slowloris)', 500, httpHead, httpPortOf),
  crowd(
    '900 bodies of 1 MB that do not end, HTTP',
    900,
    (socket) => {
      socket.resume();
      socket.write(`${httpHead}Content-Length: ${largeBody.length + 1}\r\n\r\n`);
      socket.write(largeBody);
    },
    httpPortOf,
  ),
  drip('slow bodies, HTTP', 500, `${httpHead}Content-Length: 100000\r\n\r\n`, httpPortOf),
  {
    name: 'connections that come and go beside 1,000 that had many calls',
    run: async (target) => {
      for (let opened = 0; opened < 1000; opened++) await endMostCalls(await FlowClient.connect(target.grpcPort));
      await storm('', () => beginning).run(target);
    },
  },
  {
    name: 'idle connections, opened again when closed',
    run: async (target) => {
      const one = (): Promise<void> =>
        forever(async () => {
          const socket = await dial(target.grpcPort);
          socket.resume();
          await send(socket, beginning);
          while (!socket.destroyed) await sleep(100);
        });
      await Promise.all(Array.from({ length: 1200 }, one));
    },
  },
];
