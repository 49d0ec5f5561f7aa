/** Limits how many values a metric label may have (cardinality); further names share one value. */

/** The label value for every name beyond the limit. */
const OTHERS = '(others)';
const MAX_NAMES = 256;

/**
 * Names as labels of metrics: unchanged up to a limit, all later ones as one. Callers may report any name, and every series takes
 * memory and is written at each scrape. For counters, whose series last: a gauge shows the current state, and is limited in each
 * `collect()`.
 */
export function createLabelLimit(): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (known.has(name)) return name;
    if (known.size >= MAX_NAMES) return OTHERS;
    known.add(name);
    return name;
  };
}
