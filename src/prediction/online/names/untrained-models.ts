/** Gives each target model without a trained version a live model: of 256 names, one unused for ten minutes gives way to a new one. */
import type { World } from '../../../world.ts';

export interface UntrainedModels<Model> {
  /** The live model of a name, which is in use now; undefined if it has none of its own. */
  find(name: string): Model | undefined;
  /** The same, or a new one. Undefined while there is no room: the name then shares a live model with others. */
  ensure(name: string): Model | undefined;
  has(name: string): boolean;
  /** Gives the name this live model, also where there is no room. */
  set(name: string, live: Model): void;
  delete(name: string): void;
  /** Calls the listener with each name that has given way to another one. */
  onForget(listener: (name: string) => void): void;
}

/** The most names that have a live model of their own. */
const MAX_UNTRAINED = 256;
/**
 * A name can be replaced after it was not used for this long. So names that never come again do not shut out others, and a stream
 * of new names does not create a live model for each report.
 */
export const LEAST_IDLE_MS = 600_000;

interface UsedModel<Model> {
  readonly live: Model;
  readonly usedMs: number;
}

export function createUntrainedModels<Model>(
  create: () => Model,
  { monotonicMs }: Pick<World, 'monotonicMs'>,
): UntrainedModels<Model> {
  /** The one that was used longest ago comes first. */
  const models = new Map<string, UsedModel<Model>>();
  const listeners: ((name: string) => void)[] = [];

  function set(name: string, live: Model): void {
    models.delete(name);
    models.set(name, { live, usedMs: monotonicMs() });
  }

  function find(name: string): Model | undefined {
    const live = models.get(name)?.live;
    if (live !== undefined) set(name, live);
    return live;
  }

  function forgetIdle(): void {
    for (const [name, { usedMs }] of models) {
      if (models.size < MAX_UNTRAINED || monotonicMs() - usedMs < LEAST_IDLE_MS) return;
      models.delete(name);
      for (const listener of listeners) listener(name);
    }
  }

  return {
    find,
    ensure(name) {
      const known = find(name);
      if (known !== undefined) return known;
      forgetIdle();
      if (models.size >= MAX_UNTRAINED) return undefined;
      const live = create();
      set(name, live);
      return live;
    },
    has: (name) => models.has(name),
    set,
    delete: (name) => void models.delete(name),
    onForget: (listener) => void listeners.push(listener),
  };
}
