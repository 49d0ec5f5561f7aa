/** Adds the indexes by which samples, and requests from traces, are read in the order of their times. */
import type { Migration } from '../../store.ts';

export const predictionByTime: Migration = {
  id: 91,
  name: 'prediction-by-time',
  isExpansion: true,
  statements: [
    // The newest samples of a model. An old log that is imported today has new ids and old times.
    'CREATE INDEX samples_by_time ON samples (target_model, at_ms, id)',
    // The learned requests that were running at a start: waiting ones have ended later, and are by far the most.
    'CREATE INDEX waiting_spans_learned_by_end ON waiting_spans (is_learned, end_ms)',
  ],
};
