/** Writes the validation errors of a body as FastAPI does (422). */
import { Failure } from '../../errors.ts';

export interface Fault {
  /** The path from `body` down to the field. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The type of the error as pydantic 2 names it. */
  readonly type: string;
}

/** A limit, because the errors of a body with a few bytes a row can be longer than the body. */
const MAX_FAULTS = 1000;

/** Collects the validation errors of a body. */
export interface FaultList {
  readonly count: number;
  add(fault: Fault): void;
  /** Throws one refusal with all errors, if there are any. */
  throwIfAny(): void;
}

export function createFaultList(): FaultList {
  const faults: Fault[] = [];
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(fault) {
      count += 1;
      if (faults.length < MAX_FAULTS) faults.push(fault);
    },
    throwIfAny() {
      if (count === 0) return;
      const left = count - faults.length;
      const rest = { loc: ['body'], msg: `${left} more faults are not listed`, type: 'too_many_faults' };
      throw refuseBody(left === 0 ? faults : [...faults, rest]);
    },
  };
}

export function refuseBody(faults: readonly Fault[]): Failure {
  return new Failure('invalid', 'Cannot read the request: its body breaks a rule', { status: 422, faults });
}
