/** Records the load of the machine during a run: figures of two runs can be compared only if their loads are alike. */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { readCpuMs } from './processes.ts';

export interface MachineFigures {
  /** Processor time outside of this benchmark and its processes, with the time that the host took, as a share of all cores. */
  readonly othersPercent: number;
  readonly stolenPercent: number;
  /** The median time of a fixed computation, since the clock rate of a virtual machine changes from minute to minute. */
  readonly loopMicros: number;
}

export interface MachineWatch {
  /** Times the computation once. */
  timeLoop(): void;
  /** Since the watch began. */
  read(): MachineFigures;
}

const ROUNDS = 2_000_000;
const TIMES = 5;

export function watchMachine(): MachineWatch {
  const startMs = performance.now();
  const start = readMachine();
  const loops: number[] = [];
  return {
    timeLoop: () => {
      for (let time = 0; time < TIMES; time += 1) loops.push(timeLoop());
    },
    read: () => {
      const end = readMachine();
      const share = (ms: number) => Math.round((ms / (performance.now() - startMs) / cpus().length) * 100);
      return {
        othersPercent: share(end.busyMs - start.busyMs - (end.ownMs - start.ownMs)),
        stolenPercent: share(end.stolenMs - start.stolenMs),
        loopMicros: Math.round(loops.toSorted((a, b) => a - b)[Math.floor(loops.length / 2)] ?? Number.NaN),
      };
    },
  };
}

function timeLoop(): number {
  const startMs = performance.now();
  let sum = 0;
  for (let round = 0; round < ROUNDS; round += 1) sum = (sum + round * 31) % 65_521;
  const tookMicros = (performance.now() - startMs) * 1000;
  // The result is used, since a compiler might otherwise drop the loop.
  return sum < 0 ? Number.NaN : tookMicros;
}

/** The programs, the databases and the receivers are children of this process. */
function readMachine() {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]!.split(/ +/).slice(1).map(Number);
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0, stolen = 0] = fields;
  const busyMs = (user + nice + system + interrupts + softInterrupts) * 10;
  return { busyMs, stolenMs: stolen * 10, ownMs: readCpuMs(process.pid) };
}
