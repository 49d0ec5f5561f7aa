/** Imports a LightGBM model from its text format. */
import { Failure } from '../../errors.ts';
import { type GeneralForest, type GeneralNode, MISSING_GOES_LEFT } from '../gbdt/general/general-tree.ts';
import { createImportedForest, type ImportedForest } from './imported-forest.ts';

const LINKS: ReadonlyMap<string, GeneralForest['link']> = new Map([
  ['regression', 'identity'],
  ['regression_l1', 'identity'],
  ['huber', 'identity'],
  ['fair', 'identity'],
  ['quantile', 'identity'],
  ['mape', 'identity'],
  ['poisson', 'exp'],
  ['gamma', 'exp'],
  ['tweedie', 'exp'],
]);

/** Reads what `Booster.save_model('model.txt')` of LightGBM wrote (3.x, 4.x): one target, numeric features. */
export function parseLightgbmText(text: string): ImportedForest {
  const [header, ...sections] = text.split(/^Tree=\d+\s*$/m);
  const fields = parseFields(header ?? '');
  if (!text.startsWith('tree')) throw refuse('this is not its text format');
  if (!text.includes('end of trees')) throw refuse('the file ends too early');
  const link = findLink(fields.get('objective') ?? '');
  if (fields.get('num_tree_per_iteration') !== '1') throw refuse('it must have one output');
  if (fields.has('average_output')) throw refuse('random forests are not supported');
  const featureCount = Number(fields.get('max_feature_idx') ?? Number.NaN) + 1;
  const trees = sections.map((section) => readTree(parseFields(section.split('end of trees')[0]!)));
  const featureNames = (fields.get('feature_names') ?? '').split(' ').filter((name) => name !== '');
  return createImportedForest('LightGBM', { featureCount, base: 0, link, precision: 'double', trees }, featureNames);
}

/** "regression", with options after it, as in "regression sqrt". */
function findLink(objective: string): GeneralForest['link'] {
  const [name, ...options] = objective.split(' ');
  const link = LINKS.get(name ?? '');
  if (link === undefined || options.includes('sqrt'))
    throw refuse(`the objective must be a regression, got "${objective}"`);
  return link;
}

/** Parses lines of "name=value"; a word alone is a name with an empty value. */
function parseFields(section: string): ReadonlyMap<string, string> {
  return new Map(
    section.split(/\r?\n/).map((line) => {
      const equals = line.indexOf('=');
      return equals < 0 ? [line.trim(), ''] : [line.slice(0, equals), line.slice(equals + 1).trim()];
    }),
  );
}

function readTree(fields: ReadonlyMap<string, string>): GeneralNode[] {
  if (fields.get('num_cat') !== '0') throw refuse('its features must be numeric');
  if (fields.get('is_linear') === '1') throw refuse('linear trees are not supported');
  const leaves = readNumbers(fields, 'leaf_value');
  const leafCount = Number(fields.get('num_leaves'));
  if (leaves.length !== leafCount) throw refuse(`a tree has ${leaves.length} of ${leafCount} leaves`);
  const splits = leafCount - 1;
  const [features, thresholds, decisions, left, right] = (
    ['split_feature', 'threshold', 'decision_type', 'left_child', 'right_child'] as const
  ).map((name) => readNumbers(fields, name)) as [number[], number[], number[], number[], number[]];
  const [splitCovers, leafCovers] = [readNumbers(fields, 'internal_count'), readNumbers(fields, 'leaf_count')];
  // A child of 0 or more is a split; a negative one is the bitwise complement of a leaf. Leaves are put after the splits.
  const place = (child: number | undefined): number => (child! >= 0 ? child! : splits + ~child!);
  const nodes: GeneralNode[] = Array.from({ length: splits }, (_, node) => ({
    feature: features[node] ?? -1,
    threshold: thresholds[node] ?? Number.NaN,
    left: place(left[node]),
    right: place(right[node]),
    missing: readMissing(decisions[node] ?? 0),
    cover: splitCovers[node] ?? 0,
  }));
  return [...nodes, ...leaves.map((leaf, at) => ({ leaf, cover: leafCovers[at] ?? 0 }))];
}

/** With bit 1 (from 0), missing values go left. Bits 2 and 3 define which values are missing: none, zero or NaN. */
function readMissing(decision: number): number {
  const kind = (decision >> 2) & 3;
  return kind + ((decision & 2) === 0 ? 0 : MISSING_GOES_LEFT);
}

function readNumbers(fields: ReadonlyMap<string, string>, name: string): number[] {
  const text = fields.get(name) ?? '';
  return text === '' ? [] : text.split(' ').map(Number);
}

function refuse(reason: string): Failure {
  return new Failure('invalid', `Cannot import the LightGBM model: ${reason}`);
}
