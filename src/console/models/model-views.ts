/** Declares what the pages of models read and may change. */

/** The values that the pages about models need. Names of percentages and milliseconds have their unit; all other numbers are counts. */
import type { AccuracyCharts, Scores } from './accuracy-views.ts';
import type { CapacityView } from './capacity-views.ts';
import type { EffectsView } from './effect-views.ts';
import type { WhatIf } from './what-if-views.ts';

export interface ModelAdmin {
  readonly readHealth: () => Promise<ModelHealth>;
  readonly listModels: () => Promise<readonly ModelEntry[]>;
  /** Lists servers as this process last scraped them; undefined if none are configured. */
  readonly listScrapedServers: () => readonly ScrapedServerView[] | undefined;
  /** Throws `not_found` for an unknown name. */
  readonly readModel: (name: string) => Promise<ModelView>;
  /** Compares both versions on the same newest samples. */
  readonly compare: (name: string, version: number, other: number) => Promise<VersionComparison>;
  readonly charts: AccuracyCharts;
  readonly whatIf: WhatIf;
  /** Takes the texts of the form by field. Throws `invalid` with the field that is wrong, `too_many` while another search runs. */
  readonly findCapacity: (name: string, texts: Readonly<Record<string, string>>) => Promise<CapacityView>;
  /** Returns undefined without a served version, or with too few samples. */
  readonly readEffects: (name: string) => Promise<EffectsView | undefined>;
  readonly promote: (name: string, version: number, by: Administrator) => Promise<void>;
  /** Throws `conflict` if a rollback would meanwhile lead to another version. */
  readonly rollBack: (name: string, version: number, by: Administrator) => Promise<void>;
}

/** The person that the audit log names. */
export interface Administrator {
  readonly id: string;
  readonly login: string;
}

export interface ScrapedServerView {
  readonly name: string;
  /** Undefined until a scrape has succeeded. */
  readonly kind: string | undefined;
  readonly ageMs: number | undefined;
  readonly state: 'fresh' | 'stale' | 'refused';
  /** Why the last scrape failed. */
  readonly reason: string | undefined;
}

export interface ModelEntry {
  readonly name: string;
  readonly versionCount: number;
  readonly servedVersion: number | undefined;
  /** The version that this process serves. */
  readonly servedId: string | undefined;
  /** The values that the served version learned. */
  readonly learned: readonly LearnedView[];
  /** The number of rows that the served version was trained with. */
  readonly trainedRows: number | undefined;
  /** The number of samples that gateways have reported. */
  readonly samples: number;
  readonly lastTraining: { readonly atMs: number; readonly outcome: string } | undefined;
}

export interface ModelView extends ModelEntry {
  /** The newest first. */
  readonly versions: readonly VersionView[];
  readonly promotions: readonly PromotionView[];
  /** The version that a rollback would serve. */
  readonly previous: number | undefined;
  readonly podTypes: readonly PodTypeView[];
  readonly servers: readonly ServerView[];
  readonly loads: readonly LoadView[];
}

export interface VersionView {
  readonly id: string;
  readonly version: number;
  readonly parentVersion: number | undefined;
  readonly createdAtMs: number;
  readonly checksum: string;
  readonly sizeBytes: number;
  readonly isPromoted: boolean;
  readonly source: Readonly<Record<string, unknown>>;
  /** The parameters of its training; empty if it was not trained here. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly learned: readonly LearnedView[];
}

export interface LearnedView {
  readonly podType: string;
  readonly target: string;
  readonly rows: number;
  readonly trees: number;
  readonly treeShare: number;
  readonly validation?: { readonly rows: number; readonly mape: number; readonly mdape: number } | undefined;
  /** Milliseconds per unit of each term. */
  readonly physics: Readonly<Record<string, number>>;
}

export interface ComparedScores {
  readonly mape: number;
  readonly p90Coverage: number;
}

export interface VersionComparison {
  readonly id: string;
  readonly otherId: string;
  readonly rows: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly learnedByVersion: number;
  readonly learnedByOther: number;
  readonly targets: readonly {
    readonly target: string;
    readonly rows: number;
    readonly version: ComparedScores;
    readonly other: ComparedScores;
    /** Percentage points of MAPE; below 0 when the version is better. */
    readonly difference: {
      readonly mean: number;
      readonly low: number;
      readonly high: number;
      readonly verdict: 'better' | 'worse' | 'unclear';
    };
  }[];
}

export interface PromotionView {
  readonly version: number;
  readonly atMs: number;
  readonly reason: string;
  readonly undoneAtMs: number | null;
}

export interface PodTypeView {
  readonly podType: string;
  readonly target: string;
  readonly scores: Scores;
  readonly hours: readonly (Scores | undefined)[];
}

export interface ServerView {
  readonly server: string;
  /** Factors relative to the pool: 1.2 is a fifth slower. */
  readonly factors: { readonly ttft?: number; readonly tpot?: number };
  readonly lastMs: number | undefined;
  readonly scores: { readonly ttft?: Scores; readonly tpot?: Scores };
}

/** A histogram of the samples by one measure: the first count is below the first edge, the next from it to the second, and so on. */
export interface LoadView {
  readonly field: string;
  readonly edges: readonly number[];
  readonly counts: readonly number[];
}

export interface ModelHealth {
  /** The models that are served or have the most samples, at most as many as a page shows. */
  readonly models: readonly ModelHealthView[];
  readonly modelCount: number;
  readonly nowMs: number;
}

export interface ModelHealthView {
  readonly name: string;
  readonly servedVersion: number | undefined;
  readonly versionCount: number;
  readonly samples: number;
  readonly targets: readonly TargetHealthView[];
  /** The drift alarms of the last day, newest first. */
  readonly drift: readonly {
    readonly target: string;
    readonly cause: 'error' | 'coverage';
    readonly count: number;
    readonly lastAtMs: number;
  }[];
  /** Servers that are slower or faster than the served version expects, the largest difference first; 1.3 is 30 % slower. */
  readonly shifts: readonly { readonly server: string; readonly target: string; readonly factor: number }[];
}

export interface TargetHealthView {
  readonly target: string;
  /** The error on rows held out of its training; null if it was not trained here. */
  readonly heldOutMape: number | null;
  readonly nominalCoverage: number;
  /** The number of reported times of the last day. */
  readonly rows: number;
  readonly liveMape: number | null;
  readonly liveCoverage: number | null;
}
