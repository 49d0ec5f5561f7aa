/** Writes the coefficients of physics by the names of their terms, and reads them in a release that may have other terms. */
import type { PhysicsModel } from './physics.ts';
import { countTerms, listTermNames, type PhysicsTarget } from './terms.ts';

export interface SavedPhysics {
  readonly coefficients: Readonly<Record<string, number>>;
  readonly floorMs: number;
}

export function savePhysics({ target, coefficients, floorMs }: PhysicsModel): SavedPhysics {
  return {
    coefficients: Object.fromEntries(listTermNames(target).map((name, t) => [name, coefficients[t]!])),
    floorMs,
  };
}

export function restorePhysics(target: PhysicsTarget, { coefficients, floorMs }: SavedPhysics): PhysicsModel {
  const names = listTermNames(target);
  // A term that was added to the program after the prices were fitted has no price here: it adds nothing.
  const known = Float64Array.from({ length: countTerms(target) }, (_, t) => coefficients[names[t]!] ?? 0);
  return { target, coefficients: known, floorMs };
}
