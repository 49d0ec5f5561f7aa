/** What the chart tells an operator after an installation: how to leave the embedded store. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { RenderedChart } from '../../scripts/helm/chart.ts';
import { chartSkip as skip, useChart } from '../support/deploy/rendered-chart.ts';

const chart = useChart();

function readNotes({ files }: RenderedChart): string {
  return files['templates/NOTES.txt'] ?? '';
}

test('the notes of an embedded store name the guide to PostgreSQL, since the setting alone moves nothing', {
  skip,
}, () => {
  const notes = readNotes(chart.renderWith('{}'));
  assert.doesNotMatch(notes, /moves it/);
  const [, file = '', heading = ''] = /as (\S+\.md) says under "(.+)"/.exec(notes) ?? [];
  assert.match(readFileSync(file, 'utf8'), new RegExp(`^### ${heading}$`, 'm'));
});
