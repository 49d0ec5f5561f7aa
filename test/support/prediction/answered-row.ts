import type { AnsweredRow } from '../../../src/prediction/live-accuracy/answered-row.ts';

/** A first token that was predicted 10 % too late, within its p90. */
export const ANSWERED_ROW: Omit<AnsweredRow, 'nowMs'> = {
  targetModel: 'm',
  version: 1,
  podType: '',
  server: '10.0.0.1',
  target: 'ttft',
  predictedMs: 110,
  p90Ms: 150,
  observedMs: 100,
  metrics: [512, 0.5, 2, 8, 0.4, 0, 0, 0, 0],
};
