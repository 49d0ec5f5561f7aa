/** Clients that break no rule, but request as much as they can. */
import { FlowClient } from '../../test/support/grpc/flow-client.ts';
import { frameMessage } from '../../test/support/grpc/http2-frames.ts';
import { EVENTS, EventMessage } from '../../test/support/prediction/observation-events.ts';
import { openConnection } from '../predict/grpc-load.ts';
import { createRequest } from '../predict/messages.ts';
import { type Attack, open, PREDICT, REPORT, type Target } from './attack.ts';

interface Greed {
  readonly path?: string;
  readonly inputs: number;
  readonly connections: number;
  readonly inFlight: number;
}

/** The highest allowed ratio of the others' p99 beside one client that breaks no rule. */
const MAX_RATIO_BESIDE_ONE = 2;

function greedy(name: string, { path = PREDICT, inputs, connections, inFlight }: Greed): Attack {
  return {
    name,
    maxRatio: connections === 1 ? MAX_RATIO_BESIDE_ONE : 3,
    run: async ({ grpcPort }: Target) => {
      const message = createRequest(inputs);
      const ask = async (): Promise<void> => {
        const connection = await openConnection({ host: '127.0.0.1', port: grpcPort, path, message });
        const next = (): void => connection.send(() => setImmediate(next));
        for (let index = 0; index < inFlight; index++) next();
      };
      await Promise.all(Array.from({ length: connections }, ask));
      await new Promise(() => {});
    },
  };
}

export const greedyClients: readonly Attack[] = [
  greedy('1,000 calls in flight', { inputs: 1, connections: 1, inFlight: 1000 }),
  greedy('1,000 calls of 64 inputs in flight', { inputs: 64, connections: 1, inFlight: 1000 }),
  greedy('100 calls of 4,096 inputs in flight', { inputs: 4096, connections: 1, inFlight: 100 }),
  greedy('8 connections with 100 calls in flight', { inputs: 16, connections: 8, inFlight: 100 }),
  greedy('calls of a method that does not exist', { path: '/a.b/C', inputs: 1, connections: 1, inFlight: 1000 }),
  {
    name: '200 Report streams',
    maxRatio: MAX_RATIO_BESIDE_ONE,
    run: async ({ grpcPort }) => {
      const client = await FlowClient.connect(grpcPort);
      const messages = EVENTS.map((event) =>
        frameMessage(EventMessage.encode(EventMessage.fromObject(event)).finish()),
      );
      const bytes = Buffer.concat(Array.from({ length: 100 }, () => messages).flat());
      const stream = async (id: number): Promise<void> => {
        client.send(open(id, REPORT));
        while (!client.isClosed) await client.sendData(id, bytes, false);
      };
      await Promise.all(Array.from({ length: 200 }, (_, index) => stream(2 * index + 1)));
    },
  },
];
