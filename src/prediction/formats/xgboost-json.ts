/** Imports an XGBoost model from its JSON format. */
import { z } from 'zod';
import { Failure } from '../../errors.ts';
import { type GeneralForest, type GeneralNode, MISSING_GOES_LEFT, MISSING_NAN } from '../gbdt/general/general-tree.ts';
import { createImportedForest, type ImportedForest } from './imported-forest.ts';

const flags = z.array(z.union([z.boolean(), z.number()]));

const treeSchema = z.object({
  left_children: z.array(z.int()),
  right_children: z.array(z.int()),
  split_indices: z.array(z.int()),
  split_conditions: z.array(z.number()),
  default_left: flags,
  split_type: z.array(z.int()).optional(),
  sum_hessian: z.array(z.number()).optional(),
});

const modelSchema = z.object({
  learner: z.object({
    feature_names: z.array(z.string()).optional(),
    attributes: z.object({ best_iteration: z.string().optional() }).optional(),
    gradient_booster: z.object({
      name: z.string(),
      model: z
        .object({
          gbtree_model_param: z.object({ num_parallel_tree: z.string().optional() }).optional(),
          trees: z.array(treeSchema),
        })
        .optional(),
    }),
    learner_model_param: z.object({
      base_score: z.string(),
      num_class: z.string().optional(),
      num_feature: z.string(),
      num_target: z.string().optional(),
    }),
    objective: z.object({ name: z.string() }),
  }),
});

type Learner = z.infer<typeof modelSchema>['learner'];

const LINKS: ReadonlyMap<string, GeneralForest['link']> = new Map([
  ['reg:squarederror', 'identity'],
  ['reg:squaredlogerror', 'identity'],
  ['reg:absoluteerror', 'identity'],
  ['reg:pseudohubererror', 'identity'],
  ['reg:quantileerror', 'identity'],
  ['count:poisson', 'exp'],
  ['reg:gamma', 'exp'],
  ['reg:tweedie', 'exp'],
]);

/** Reads what `Booster.save_model('model.json')` of XGBoost wrote (1.x to 3.x): one target, numeric features. */
export function parseXgboostJson(text: string): ImportedForest {
  const { learner } = parseModel(text);
  const { name, model } = learner.gradient_booster;
  if (name !== 'gbtree' || model === undefined) throw refuse(`the booster must be gbtree, got "${name}"`);
  const link = LINKS.get(learner.objective.name);
  if (link === undefined) throw refuse(`the objective must be a regression, got "${learner.objective.name}"`);
  const { base_score, num_class, num_feature, num_target } = learner.learner_model_param;
  if (Number(num_class ?? 0) > 1 || Number(num_target ?? 1) > 1) throw refuse('it must have one output');
  const baseScore = parseBaseScore(base_score, link);
  const forest = {
    featureCount: Number(num_feature),
    base: link === 'exp' ? Math.log(baseScore) : baseScore,
    link,
    precision: 'single' as const,
    trees: model.trees.slice(0, countUsedTrees(learner)).map(readTree),
  };
  return createImportedForest('XGBoost', forest, learner.feature_names ?? []);
}

function parseModel(text: string): z.infer<typeof modelSchema> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new Failure('invalid', 'Cannot import the XGBoost model: the file is not JSON', {}, { cause });
  }
  const parsed = modelSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw refuse(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not a model'}`);
}

/** After early stopping, `XGBRegressor.predict` uses the rounds up to the best one. Undefined without it: all trees are used. */
function countUsedTrees({ attributes, gradient_booster }: Learner): number | undefined {
  const best = attributes?.best_iteration;
  if (best === undefined) return undefined;
  const treesOfRound = gradient_booster.model?.gbtree_model_param?.num_parallel_tree ?? '1';
  const count = (Number(best) + 1) * Number(treesOfRound);
  if (Number.isSafeInteger(count) && count > 0) return count;
  throw refuse(`best_iteration and num_parallel_tree must be whole numbers, got "${best}" and "${treesOfRound}"`);
}

/** The text is "5E-1", and from version 3 on "[5E-1]". */
function parseBaseScore(text: string, link: GeneralForest['link']): number {
  const value = Number(text.replace(/^\[|\]$/g, ''));
  if (text === '' || !Number.isFinite(value)) throw refuse(`base_score must be one number, got "${text}"`);
  // The logarithm of the base score is added to the trees.
  if (link === 'exp' && !(value > 0)) throw refuse(`base_score must be more than 0 for this objective, got "${text}"`);
  return value;
}

function readTree(tree: z.infer<typeof treeSchema>): GeneralNode[] {
  if (tree.split_type?.some((kind) => kind !== 0) === true) throw refuse('its features must be numeric');
  return tree.left_children.map((left, node) => {
    const condition = tree.split_conditions[node] ?? Number.NaN;
    // Old files have no covers. Without covers, both children of a node count alike.
    const cover = tree.sum_hessian?.[node] ?? 0;
    if (left === -1) return { leaf: condition, cover };
    return {
      feature: tree.split_indices[node] ?? -1,
      // XGBoost sends values below the condition to the left: among 32-bit floats, those at or below its predecessor.
      threshold: findPredecessor(condition),
      left,
      right: tree.right_children[node] ?? -1,
      missing: MISSING_NAN + (Number(tree.default_left[node]) === 1 ? MISSING_GOES_LEFT : 0),
      cover,
    };
  });
}

/** Returns the next smaller 32-bit float. */
function findPredecessor(value: number): number {
  const float = Float32Array.of(value);
  if (float[0] === 0) return -1.401298464324817e-45;
  const bits = new Int32Array(float.buffer);
  bits[0]! += float[0]! > 0 ? -1 : 1;
  return float[0]!;
}

function refuse(reason: string): Failure {
  return new Failure('invalid', `Cannot import the XGBoost model: ${reason}`);
}
