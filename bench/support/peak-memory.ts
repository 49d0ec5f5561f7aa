/** Reads the most memory that a process had, as the kernel counts it: a reading from time to time misses what lies between. */
import { readFileSync, writeFileSync } from 'node:fs';

/** The number by which the kernel counts from now on (`proc_pid_clear_refs`). */
const RESET_PEAK = '5';

/** The peak is then that from now on. */
export function resetPeakRss(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, RESET_PEAK);
}

/** In megabytes; undefined when the process is gone. */
export function readPeakRssMb(pid: number): number | undefined {
  try {
    const kilobytes = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Math.round(Number(kilobytes) / 1024);
  } catch {
    return undefined;
  }
}
