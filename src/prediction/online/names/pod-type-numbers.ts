/** Numbers the first few pod types; all others share one number. */
import { normalizePodType, numberOfPodType } from '../../schema/pod-type.ts';

/** The first few pod types have numbers of their own, from 1 on; all others share 0, as callers may send any text. */
export interface PodTypeNumbers {
  readonly names: readonly string[];
  isKnown(podType: string): boolean;
  numberOf(podType: string): number;
  register(podType: string): void;
}

export function createPodTypeNumbers(maxPodTypes: number): PodTypeNumbers {
  const names: string[] = [];
  return {
    names,
    isKnown: (podType) => names.includes(podType),
    numberOf: (podType) => numberOfPodType(names, podType),
    register(podType) {
      const name = normalizePodType(podType);
      if (!names.includes(name) && names.length + 1 < maxPodTypes) names.push(name);
    },
  };
}
