/** Which decayed mean of the residuals corrects an expert: 0 is the fast one, 1 the slow one. */
export type Speed = 0 | 1;

/** One way to predict a time: physics or trees, corrected by recent residuals or not. */
export interface Expert {
  readonly name: string;
  readonly base: 'physics' | 'trees';
  readonly speed: Speed | undefined;
}

export const EXPERTS: readonly Expert[] = [
  { name: 'physics', base: 'physics', speed: undefined },
  { name: 'physics + slow offset', base: 'physics', speed: 1 },
  { name: 'physics + fast offset', base: 'physics', speed: 0 },
  { name: 'trees', base: 'trees', speed: undefined },
  { name: 'trees + slow offset', base: 'trees', speed: 1 },
  { name: 'trees + fast offset', base: 'trees', speed: 0 },
];

export const EXPERT_COUNT = EXPERTS.length;
