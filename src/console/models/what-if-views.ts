/** The prediction for a request and a load that a person types. */

export interface WhatIf {
  readonly fields: readonly WhatIfField[];
  /** Texts by the names of fields. Throws `invalid` with the field that cannot be used. */
  readonly predict: (name: string, texts: Readonly<Record<string, string>>) => WhatIfAnswer;
}

export interface WhatIfField {
  readonly name: string;
  readonly kind: 'int32' | 'double' | 'string';
  readonly meaning: string;
}

export interface WhatIfAnswer {
  readonly modelVersion: string;
  /** What callers of Predict get. */
  readonly statistic: string;
  readonly targets: readonly WhatIfTarget[];
}

export interface WhatIfTarget {
  readonly target: string;
  readonly answerMs: number;
  readonly statistics: readonly { readonly name: string; readonly ms: number }[];
  readonly explanation: {
    /** Milliseconds that add up. */
    readonly physics: Readonly<Record<string, number>>;
    /** What the sum is multiplied with. */
    readonly treeFactors: Readonly<Record<string, number>>;
    /** Milliseconds that are added afterwards. */
    readonly treeMilliseconds?: Readonly<Record<string, number>>;
    readonly serverFactor: number;
  };
  /** What the explanation comes to. */
  readonly explainedMs: number;
}
