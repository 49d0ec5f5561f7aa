/** Reads the peak memory of a process from the kernel, since sampling misses peaks between two readings. */
import { readFileSync, writeFileSync } from 'node:fs';

/** The command that resets the kernel's peak (`proc_pid_clear_refs`). */
const RESET_PEAK = '5';

/** Resets the peak, which counts from now on. */
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
