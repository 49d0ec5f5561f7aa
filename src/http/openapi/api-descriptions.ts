/** Declares what an area adds to the OpenAPI document of its routes: names, security, meanings of fields. */

/** A JSON value of the document. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** OpenAPI 3.1 security requirements: one of them is enough. */
export type Security = readonly Readonly<Record<string, readonly string[]>>[];

export interface OperationDescription {
  readonly operationId: string;
  readonly description?: string;
  readonly security: Security;
}

export interface ApiDescriptions {
  /** The operations by method and path, `POST /oauth/token`. An operation that its own route describes is not here. */
  readonly operations: Readonly<Record<string, OperationDescription>>;
  /** Meaning of a field or parameter by `Schema.field`, `operationId.field`, `parent.field` or `field`; the first that exists holds. */
  readonly fields: Readonly<Record<string, string>>;
  /**
   * Example values by the same keys, where the type alone suggests none. The key of an answer with one status is `Schema.status`
   * or `operationId.status`, such as `OAuthError.401`.
   */
  readonly examples: Readonly<Record<string, Json>>;
  /** OpenAPI path items by name. Built when the document is first requested. */
  readonly listWebhooks?: () => Readonly<Record<string, Json>>;
}

/** A bearer token, or an OAuth flow that gives one, with this scope. */
export function requireToken(scope: string): Security {
  return [{ bearer: [scope] }, { oauth2: [scope] }];
}
