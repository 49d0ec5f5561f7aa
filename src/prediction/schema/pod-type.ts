/** Normalizes the names of pod types (prefill, decode, aggregate). */
export function normalizePodType(podType: string): string {
  return podType === 'aggregate' ? '' : podType;
}

/** Returns the number of a pod type: from 1 on, in the order in which they became known; 0 for an unknown one. */
export function numberOfPodType(known: readonly string[], podType: string): number {
  return known.indexOf(normalizePodType(podType)) + 1;
}
