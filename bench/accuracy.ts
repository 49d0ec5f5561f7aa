/**
 * Measures how accurate predictions are, compared with peers: XGBoost, LightGBM and Bayesian ridge with llm-d's features and
 * parameters, and our physics alone, learned from the same rows on the same schedule.
 *
 *   node bench/accuracy.ts [--input FILE[@KV_TOKENS]]… [--no-pools] [--only TEXT]… [--predictor NAME]… [--seed N]
 *                          [--before FOLDER] [--save FILE] [--beside FILE]
 *
 * Evaluates each file by the protocols random, time and prequential (logs of requests, `FILE@480000`, by time and
 * prequential), and simulated pools with reports at once, late, in batches and lost. MAPE and the share of requests below
 * the p90 have 90 % intervals by block bootstrap. `--only` keeps cells whose name contains a text, `--predictor` some of
 * the predictors, `--seed` simulates other pools. `--before` evaluates another checkout of this program on the same rows;
 * `--save` keeps the figures after each cell, and `--beside` compares with such a file. Progress goes to standard error.
 *
 * Peers need Debian's python3-xgboost and python3-sklearn; `--python` names the interpreter. LightGBM runs if Python has it; Debian
 * does not package it, so scikit-learn's histogram boosting with LightGBM's parameters runs too. Peers that support quantiles have
 * a p90 too, but not in prequential order, where they learn thirty times.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Answer, Answers } from '../src/prediction/evaluation/accuracy.ts';
import {
  type ObservationTable,
  PREDICTION_TARGETS,
  type PredictionTarget,
} from '../src/prediction/schema/observation-table.ts';
import { type Cell, listFileCells, listPoolCells } from './accuracy/cells.ts';
import { describeUncovered } from './accuracy/coverage.ts';
import { describeFile } from './accuracy/logs.ts';
import {
  answerByPeers,
  answerByPhysics,
  answerByProgram,
  loadProgram,
  type Program,
  readLog,
} from './accuracy/predictors.ts';
import { compareMeans, type Figures, formatRow, HEAD, listWorse, measure, type Result } from './accuracy/results.ts';
import { planParts } from './accuracy/schedule.ts';
import { readBenchFlags } from './support/bench-flags.ts';

const { values: flags, positionals } = readBenchFlags({
  options: {
    input: { type: 'string', multiple: true, default: [] },
    'no-pools': { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    predictor: { type: 'string', multiple: true, default: [] },
    seed: { type: 'string', default: '0' },
    before: { type: 'string' },
    save: { type: 'string' },
    beside: { type: 'string' },
    python: { type: 'string', default: '/usr/bin/python3' },
  },
  allowPositionals: true,
});
const OURS = 'Trivet';
const BEFORE = 'Trivet, before';
const PHYSICS = 'physics alone';
const PEERS = ['XGBoost', 'LightGBM', 'histogram boosting', 'Bayesian ridge'];

type Evaluate = (cell: Cell, table: ObservationTable) => Promise<Result[]>;

function isAsked(predictor: string): boolean {
  return flags.predictor.length === 0 || flags.predictor.includes(predictor);
}

/** The test rows of peers; in a window of time all rows, since they were asked before any peer could answer. */
function createRowFilter(cell: Cell, table: ObservationTable, target: PredictionTarget): (answer: Answer) => boolean {
  const { windowMs } = cell;
  if (windowMs !== undefined) {
    const firstMs = table.atMs.subarray(0, table.count).reduce((least, ms) => Math.min(least, ms));
    return ({ row }) => table.atMs[row]! - firstMs >= windowMs[0] && table.atMs[row]! - firstMs < windowMs[1];
  }
  const testRows = new Set(planParts(table, target, cell).flatMap(({ test }) => test));
  return ({ row }) => testRows.has(row);
}

function describeResult(
  cell: Cell,
  predictor: string,
  figures: Partial<Record<PredictionTarget, Figures | undefined>>,
): Result {
  return { cell: cell.name, predictor, ...figures };
}

function evaluateProgram(program: Program, predictor: string): Evaluate {
  return async (cell, table) => {
    const answers: Answers = await answerByProgram(program, cell);
    const figures = PREDICTION_TARGETS.map((target) => [
      target,
      measure(answers[target].filter(createRowFilter(cell, table, target))),
    ]);
    return [describeResult(cell, predictor, Object.fromEntries(figures))];
  };
}

const evaluatePhysicsAlone: Evaluate = async (cell, table) => {
  if (cell.windowMs !== undefined) return [];
  const figures = PREDICTION_TARGETS.map((target) => [
    target,
    measure(answerByPhysics(table, target, planParts(table, target, cell))),
  ]);
  return [describeResult(cell, PHYSICS, Object.fromEntries(figures))];
};

const evaluatePeers: Evaluate = async (cell, table) => {
  if (cell.windowMs !== undefined) return [];
  const results = new Map<string, Result>();
  for (const target of PREDICTION_TARGETS) {
    const parts = planParts(table, target, cell);
    if (parts.length === 0) continue;
    const only = PEERS.filter(isAsked);
    const quantiles = cell.protocol !== 'prequential';
    for (const { name, answers } of answerByPeers({ table, target, parts, python: flags.python, only, quantiles })) {
      const known = results.get(name) ?? describeResult(cell, name, {});
      results.set(name, answers === undefined ? { ...known, missing: true } : { ...known, [target]: measure(answers) });
    }
  }
  return [...results.values()];
};

async function listEvaluations(ours: Program): Promise<Evaluate[]> {
  const evaluations: Evaluate[] = [];
  if (isAsked(OURS)) evaluations.push(evaluateProgram(ours, OURS));
  if (flags.before !== undefined)
    evaluations.push(evaluateProgram(await loadProgram(pathToFileURL(`${flags.before}/`)), BEFORE));
  if (isAsked(PHYSICS)) evaluations.push(evaluatePhysicsAlone);
  if (PEERS.some(isAsked)) evaluations.push(evaluatePeers);
  return evaluations;
}

function listCells(folder: string): Cell[] {
  const files = [...flags.input, ...positionals].flatMap((file) => {
    const log = describeFile(file);
    return listFileCells(log, log.format === undefined ? ['random', 'time', 'prequential'] : ['time', 'prequential']);
  });
  const pools = flags['no-pools'] ? [] : listPoolCells(Number(flags.seed), folder);
  return [...files, ...pools].filter(
    ({ name }) => flags.only.length === 0 || flags.only.some((text) => name.includes(text)),
  );
}

async function evaluateCells(cells: readonly Cell[]): Promise<Result[]> {
  const ours = await loadProgram(new URL('../', import.meta.url));
  const evaluations = await listEvaluations(ours);
  const results: Result[] = [];
  console.log(`| cell | predictor | ${HEAD.join(' | ')} |\n|${'---|'.repeat(HEAD.length + 2)}`);
  for (const [i, cell] of cells.entries()) {
    const table = await readLog(ours, cell);
    console.error(`${i + 1} of ${cells.length}: ${cell.name}, ${table.count} rows`);
    for (const evaluate of evaluations)
      for (const result of await evaluate(cell, table)) {
        console.log(formatRow(result));
        results.push(result);
      }
    if (flags.save !== undefined) writeFileSync(flags.save, `${JSON.stringify(results)}\n`);
  }
  return results;
}

function printComparison(results: readonly Result[], other: string): void {
  const { mape, pinball } = compareMeans(results, OURS, other);
  if (mape === undefined) return;
  console.log(
    `\n${OURS} beside "${other}", geometric mean: MAPE ${mape.toFixed(3)}, pinball ${pinball?.toFixed(3) ?? '–'}`,
  );
  console.log(`More than 3 % worse:\n${listLines(listWorse(results, OURS, other))}`);
}

function listLines(lines: readonly string[]): string {
  return lines.length === 0 ? '- none' : lines.map((line) => `- ${line}`).join('\n');
}

const folder = mkdtempSync(join(tmpdir(), 'trivet-accuracy-'));
try {
  const results = await evaluateCells(listCells(folder));
  const saved = flags.beside === undefined ? [] : (JSON.parse(readFileSync(flags.beside, 'utf8')) as Result[]);
  const kept = saved.filter(({ predictor }) => predictor === OURS).map((result) => ({ ...result, predictor: BEFORE }));
  const compared = [...results, ...kept];
  console.log(
    `\nThe p90 of ${OURS} held for less than 88 % or more than 92 %:\n${listLines(describeUncovered(results, OURS))}`,
  );
  for (const other of [BEFORE, ...PEERS]) printComparison(compared, other);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
