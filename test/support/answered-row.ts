import type { AnsweredRow } from '../../src/prediction/online/live-accuracy.ts';

/** A first token that was predicted 10 % too late, within its p90. */
export const ANSWERED_ROW: Omit<AnsweredRow, 'nowMs'> = {
  targetModel: 'm',
  podType: '',
  server: '10.0.0.1',
  target: 'ttft',
  predictedMs: 110,
  p90Ms: 150,
  observedMs: 100,
};
