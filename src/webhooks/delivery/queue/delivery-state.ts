/**
 * Reads what the columns of a pending delivery mean together: new, requested, reserved, retrying. docs/how-it-works/delivery.md
 * explains each of them.
 *
 * | lane  | attempts          | due       | state |
 * |-------|-------------------|-----------|-------|
 * | first | 0                 |           | **new**: waits for its first attempt |
 * | first | above 0           |           | **requested**: a person requested a redelivery, which the workers will send |
 * | retry | = `schedule_from` | later     | **reserved** for a manual attempt, until it is due |
 * | retry | = `schedule_from` | now       | its manual attempt stored no result in time: the workers send it |
 * | retry | > `schedule_from` |           | **retrying**: waits for its next attempt |
 */
import type { Lane } from '../schedule/turn-tree.ts';

/** The column `lane` stores these numbers. */
export const LANE_NUMBERS = { first: 0, retry: 1 } as const satisfies Readonly<Record<Lane, number>>;

export function toLane(stored: number): Lane {
  return stored === LANE_NUMBERS.first ? 'first' : 'retry';
}

/** Condition: the delivery was neither attempted nor reserved. */
export const IS_NEW = `(state = 'pending' AND attempts = 0 AND lane = ${LANE_NUMBERS.first})`;

/** Condition: after its first attempt, a delivery is in the lane of first attempts only because a person has requested it. */
export const IS_REQUESTED = `(state = 'pending' AND lane = ${LANE_NUMBERS.first} AND attempts > 0)`;

/** Condition: a manual attempt has reserved the delivery until after its own deadline. `now` is the parameter with the present time. */
export function isReserved(now: string): string {
  return `(state = 'pending' AND lane = ${LANE_NUMBERS.retry} AND attempts = schedule_from AND due_at_ms > ${now})`;
}

/** Begins a new schedule, whose attempts are counted from here. */
export function setRequested(dueAtMs: string): string {
  return `state = 'pending', lane = ${LANE_NUMBERS.first}, due_at_ms = ${dueAtMs}, schedule_from = attempts`;
}

/** Begins a new schedule with a manual attempt. */
export function setReserved(untilMs: string): string {
  return `state = 'pending', lane = ${LANE_NUMBERS.retry}, due_at_ms = ${untilMs}, schedule_from = attempts`;
}
