/** Lists the experts: physics and trees, each with and without a decayed mean of residuals. */
export type Speed = 0 | 1;

/** One way to predict a time: physics or trees, with or without a mean of recent residuals. */
export interface Expert {
  readonly name: string;
  readonly base: 'physics' | 'trees';
  readonly speed: Speed | undefined;
}

export const EXPERTS: readonly Expert[] = [
  { name: 'physics', base: 'physics', speed: undefined },
  { name: 'physics + slow mean', base: 'physics', speed: 1 },
  { name: 'physics + fast mean', base: 'physics', speed: 0 },
  { name: 'trees', base: 'trees', speed: undefined },
  { name: 'trees + slow mean', base: 'trees', speed: 1 },
  { name: 'trees + fast mean', base: 'trees', speed: 0 },
];

export const EXPERT_COUNT = EXPERTS.length;
