/** A thread that repeats one gRPC call, so that its heap is apart from that of the server. */
import { parentPort, workerData } from 'node:worker_threads';
import { openConnection, type PredictionTarget } from '../../../bench/predict/grpc-load.ts';

const { target, inFlight } = workerData as { readonly target: PredictionTarget; readonly inFlight: number };
const connection = await openConnection(target);
parentPort!.on('message', (calls: number) => void repeat(calls).then((failed) => parentPort!.postMessage(failed)));

function repeat(calls: number): Promise<number> {
  return new Promise((resolve) => {
    let left = calls;
    let open = 0;
    let failed = 0;
    const next = (): void => {
      if (left === 0 && open === 0) resolve(failed);
      for (; left > 0 && open < inFlight; left--) {
        open += 1;
        connection.send((isAnswered) => {
          open -= 1;
          if (!isAnswered) failed += 1;
          // Starts each call with a new stack, since an answer may arrive within the call.
          setImmediate(next);
        });
      }
    };
    next();
  });
}
