/**
 * Completes the OpenAPI document of the routes: names, security, answers to refused calls, examples, servers. It overwrites
 * nothing that a route declares itself.
 */
import type { ErrorStyle } from '../mount.ts';
import type { ApiDescriptions, Json } from './api-descriptions.ts';
import { commonDescriptions } from './common-descriptions.ts';
import { createExample, type ExampleContext, type Schema } from './create-example.ts';
import { describeError } from './error-answers.ts';
import { createDescriptionFinder, type FindWord, type Place } from './find-description.ts';
import { describeSecuritySchemes } from './security-schemes.ts';

export interface CompletionDependencies {
  readonly descriptions: readonly ApiDescriptions[];
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly styleOf: (path: string) => ErrorStyle;
}

interface Finders extends ExampleContext {
  readonly findField: FindWord<string>;
}

export function completeDocument(document: Schema, dependencies: CompletionDependencies): object {
  const descriptions = [commonDescriptions, ...dependencies.descriptions];
  const schemas = document.components.schemas as Record<string, Schema>;
  const finders: Finders = {
    schemas,
    findField: createDescriptionFinder(descriptions.map(({ fields }) => fields)),
    findExample: createDescriptionFinder<Json>(descriptions.map(({ examples }) => examples)),
  };
  const operations = listOperations(document);
  for (const one of operations) completeOperation(one, schemas, { ...dependencies, descriptions });
  for (const [name, schema] of Object.entries(schemas)) describeFields(schema, whole(name), finders);
  for (const { operation } of operations) describeContent(operation, finders);
  document.components.securitySchemes = describeSecuritySchemes(dependencies.authUrl, listScopes(operations));
  document.servers = [{ url: dependencies.baseUrl, description: 'This service' }];
  if (dependencies.authUrl !== dependencies.baseUrl) nameAuthorizationServer(operations, dependencies.authUrl);
  document.webhooks = Object.assign({}, ...dependencies.descriptions.map(({ listWebhooks }) => listWebhooks?.() ?? {}));
  return document;
}

/** Clients know the authorization server by its own address, which is its issuer name. */
function nameAuthorizationServer(operations: readonly NamedOperation[], url: string): void {
  for (const { path, operation } of operations)
    if (path.startsWith('/oauth/')) operation.servers = [{ url, description: 'The authorization server' }];
}

interface NamedOperation {
  readonly key: string;
  readonly path: string;
  readonly operation: Schema;
}

function listOperations(document: Schema): NamedOperation[] {
  return Object.entries(document.paths as Record<string, Schema>).flatMap(([path, item]) =>
    Object.entries(item as Record<string, Schema>)
      .filter(([method]) => method !== 'parameters')
      .map(([method, operation]) => ({ key: `${method.toUpperCase()} ${path}`, path, operation })),
  );
}

/** Orders the parts of an operation as a reader looks for them: what it is, who may call it, then the rest. */
function completeOperation(
  { key, path, operation }: NamedOperation,
  schemas: Record<string, Schema>,
  { descriptions, styleOf }: Pick<CompletionDependencies, 'descriptions' | 'styleOf'>,
): void {
  for (const { operations } of descriptions) Object.assign(operation, { ...operations[key], ...operation });
  const { component, schema, content } = describeError(styleOf(path));
  const answers = operation.responses as Record<string, Schema>;
  const withoutBody = Object.entries(answers).filter(([status, answer]) => isError(status) && !answer.content);
  const hasErrors = Object.keys(answers).some(isError);
  if (hasErrors && withoutBody.length === 0) return;
  schemas[component] ??= structuredClone(schema);
  if (!hasErrors) answers.default = { description: 'Refused', content: structuredClone(content) };
  for (const [, answer] of withoutBody) answer.content = structuredClone(content);
}

function isError(status: string): boolean {
  return status === 'default' || status.startsWith('4') || status.startsWith('5');
}

function whole(owner: string): Place {
  return { owner, name: owner, parent: owner };
}

/** The example of an answer may depend on its status: `OAuthError.401`, or `issueToken.401` for one operation. */
function findExampleOfStatus({ owner }: Place, schema: Schema, status: string, { findExample }: Finders) {
  const component = String(schema.$ref ?? '')
    .split('/')
    .at(-1)!;
  return component === '' ? undefined : findExample({ owner, parent: component, name: status });
}

function describeContent(operation: Schema, finders: Finders): void {
  const place = whole(operation.operationId);
  for (const parameter of operation.parameters ?? [])
    parameter.description ??= parameter.schema?.description ?? finders.findField({ ...place, name: parameter.name });
  const request = ['request', operation.requestBody] as const;
  for (const [status, holder] of [request, ...Object.entries(operation.responses as Record<string, Schema>)])
    for (const media of Object.values((holder?.content ?? {}) as Record<string, Schema>)) {
      describeFields(media.schema, place, finders);
      if (media.example === undefined && media.examples === undefined)
        media.example =
          (holder === operation.requestBody
            ? finders.findExample(place)
            : findExampleOfStatus(place, media.schema, status, finders)) ?? createExample(media.schema, place, finders);
    }
}

function describeFields(schema: Schema, place: Place, finders: Finders): void {
  if (typeof schema !== 'object' || schema === null) return;
  const fields = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
  for (const [name, field] of fields) {
    const own = { owner: place.owner, parent: place.name, name };
    field.description ??= finders.findField(own);
    describeFields(field, own, finders);
  }
  const parts = [schema.items, schema.additionalProperties, schema.allOf, schema.anyOf, schema.oneOf];
  for (const part of parts.flat()) describeFields(part, place, finders);
}

function listScopes(operations: readonly NamedOperation[]): string[] {
  const required = operations.flatMap(({ operation }) => (operation.security ?? []) as Record<string, string[]>[]);
  return [...new Set(required.flatMap(({ oauth2 }) => oauth2 ?? []))].sort();
}
