/** Declares the parts of the OpenAPI document that the pages read. */

export interface SchemaNode {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly items?: SchemaNode;
  /** The schema of the values of an object with arbitrary names. */
  readonly additionalProperties?: SchemaNode | boolean;
  readonly format?: string;
  readonly pattern?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly allOf?: readonly SchemaNode[];
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
}

export interface MediaNode {
  readonly schema?: SchemaNode;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

export interface ContentNode {
  readonly description?: string;
  readonly content?: Readonly<Record<string, MediaNode>>;
}

export interface ParameterNode {
  readonly name?: string;
  readonly in?: string;
  readonly example?: string | number | boolean;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: SchemaNode;
}

export interface OperationNode {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly ParameterNode[];
  readonly requestBody?: ContentNode;
  readonly responses: Readonly<Record<string, ContentNode>>;
}

type PathItems = Readonly<Record<string, Readonly<Record<string, OperationNode>>>>;

export interface ReferenceDocument {
  readonly paths: PathItems;
  readonly webhooks: PathItems;
  readonly components: { readonly schemas: Readonly<Record<string, SchemaNode>> };
}

export interface ShownOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationNode;
}

/** The operations below each tag, in the order of the document. */
export function groupByTag(items: PathItems): ReadonlyMap<string, readonly ShownOperation[]> {
  const all = Object.entries(items).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'parameters')
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
  return Map.groupBy(all, ({ operation }) => operation.tags[0] ?? '');
}

export function toAnchor(tag: string): string {
  return `tag-${tag.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase()}`;
}
