/** Declares the values that the what-if page shows. */

/** The prediction for a request and a load that a person types. */

export interface WhatIf {
  readonly fields: readonly WhatIfField[];
  /** Takes the texts of the form by field. Throws `invalid` with the field that is wrong. */
  readonly predict: (name: string, texts: Readonly<Record<string, string>>) => WhatIfAnswer;
}

export interface WhatIfField {
  readonly name: string;
  readonly kind: 'int32' | 'double' | 'string';
  readonly meaning: string;
}

export interface WhatIfAnswer {
  readonly modelVersion: string;
  /** The answer of Predict. */
  readonly statistic: string;
  readonly targets: readonly WhatIfTarget[];
}

export interface WhatIfTarget {
  readonly target: string;
  readonly answerMs: number;
  readonly statistics: readonly { readonly name: string; readonly ms: number }[];
  readonly explanation: {
    /** Terms in milliseconds; their sum is the base of the prediction. */
    readonly physics: Readonly<Record<string, number>>;
    /** Factors by which the sum is multiplied. */
    readonly treeFactors: Readonly<Record<string, number>>;
    /** Milliseconds that are added after the factors. */
    readonly treeMilliseconds?: Readonly<Record<string, number>>;
    readonly serverFactor: number;
  };
  /** The result of the explanation. */
  readonly explainedMs: number;
}
