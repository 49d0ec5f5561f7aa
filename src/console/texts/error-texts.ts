/** Lists the English texts of the page of predicted and observed times. */
import { plural } from '../../language/plural.ts';

export const errorTexts = {
  title: 'Predicted and observed',
  lead: 'Reported times of all versions beside what was predicted for them; of a single server, without its errors by load. Both scales are logarithmic. On the line, both are equal; above it, the request took longer than predicted.',
  target: 'Time',
  all: 'all',
  none: 'Nothing was reported in this window.',
  against: (target: string) => `${target}: observed against predicted`,
  summary: (rows: number, median: string, within: string) =>
    `${plural(rows, 'reported time', 'reported times')}; the median is ${median} from the prediction, ${within} % are within 20 %`,
  axes: 'Across: predicted time. Up: observed time. A darker cell has more reports for its size.',
  equal: 'Observed as predicted',
  cells: 'Reports',
  byPredicted: 'Values by predicted time',
  byLoad: 'Error by load',
  byLoadLead:
    'How far observed times were from predicted ones, by what the server and the request were like: the median, and the range that holds 80 of 100. Above 0: the request took longer than predicted. A median that moves with a load is an error that the model repeats.',
  picture: '−75 % to +300 %',
  median: 'Median',
  middle: '10 % – 90 %',
  rows: 'Reports',
  range: 'Range',
  predicted: 'Predicted time, ms',
} as const;
