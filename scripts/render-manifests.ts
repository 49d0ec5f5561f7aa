/** Writes the manifests that the chart renders. Needs golang-go, golang-github-masterminds-sprig-dev and golang-k8s-sigs-yaml-dev. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { buildRenderer } from './helm/chart.ts';
import { renderManifests } from './helm/manifests.ts';

using renderer = buildRenderer();
for (const [file, text] of renderManifests(renderer)) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
