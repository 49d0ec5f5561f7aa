/**
 * Reads environment and file into one frozen configuration, and reports every mistake at once. The only reader of `process.env`.
 * A variable wins over the file, the file over the default; each mistake is reported under its own name.
 */
import { existsSync, readFileSync } from 'node:fs';
import { parse as parseToml, TomlError } from 'smol-toml';
import { describeError, Failure } from '../errors.ts';
import { MASK, maskPasswords } from '../mask-passwords.ts';
import type { Setting } from './setting.ts';
import { settings } from './settings.ts';

type Settings = typeof settings;
type ValueOf<S> = S extends Setting<infer T> ? T : never;

export type Config = {
  readonly [Section in keyof Settings]: {
    readonly [Name in keyof Settings[Section]]: ValueOf<Settings[Section][Name]>;
  };
};

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment of this process, to pass it with changes to another process. */
export function readEnvironment(): Environment {
  return process.env;
}

/** The environment without the variables of this program and its commands, for a service separate from the configured one. */
export function omitSettings(environment: Environment): Environment {
  const names = new Set(Object.values(settings).flatMap((section) => Object.values(section).map(({ env }) => env)));
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => !names.has(name) && !name.startsWith('TRIVET_')),
  );
}

/** Reads the environment of this process and the file it names. Throws one `invalid` failure that lists every mistake. */
export function readConfig(environment: Environment = process.env): Config {
  const file = readFile(environment);
  return parseConfig(environment, file.values, file.name);
}

/** Does the same for given values. `file` has the sections as keys, `fileName` appears in the messages. */
export function parseConfig(environment: Environment, file: Record<string, unknown> = {}, fileName = 'file'): Config {
  const mistakes: string[] = findUnknownNames(file, fileName);
  const config: Record<string, Record<string, unknown>> = {};
  for (const [section, definitions] of Object.entries(settings)) {
    const values: Record<string, unknown> = {};
    for (const [name, definition] of Object.entries(definitions) as [string, Setting<unknown>][]) {
      const given = findGiven(definition, [section, name], environment, file, fileName);
      values[name] = parseSetting(definition, given, mistakes);
    }
    config[section] = Object.freeze(values);
  }
  mistakes.push(...findContradictions(config as Config));
  if (mistakes.length > 0)
    throw new Failure(
      'invalid',
      `Cannot read the configuration, it has mistakes:\n${mistakes.map((mistake) => `  ${mistake}`).join('\n')}`,
      { mistakes },
    );
  return Object.freeze(config) as Config;
}

/** Finds settings that are valid alone and invalid together. */
function findContradictions({ grpc, authorization, prediction, mail }: Config): string[] {
  const hasHalfOfTls = (grpc.tlsCertFile === undefined) !== (grpc.tlsKeyFile === undefined);
  const hasOnlyAuthorities = grpc.tlsClientCaFile !== undefined && grpc.tlsCertFile === undefined;
  const hasNamelessUpstream =
    authorization.upstreamIssuer !== undefined && authorization.upstreamClientId === undefined;
  return [
    ...(hasHalfOfTls || hasOnlyAuthorities
      ? ['GRPC_TLS_CERT_FILE and GRPC_TLS_KEY_FILE must be given together, and both with GRPC_TLS_CLIENT_CA_FILE']
      : []),
    ...((prediction.llmDPort === undefined) !== (prediction.llmDModel === undefined)
      ? ['LLM_D_PORT and LLM_D_MODEL must be given together']
      : []),
    ...(hasNamelessUpstream ? ['UPSTREAM_CLIENT_ID: must be given with UPSTREAM_ISSUER'] : []),
    ...findMailContradictions(mail),
  ];
}

function findMailContradictions({ host, from, user, password, security }: Config['mail']): string[] {
  const isPlain = host !== undefined && user !== undefined && security === 'none';
  return [
    ...((host === undefined) === (from === undefined) ? [] : ['SMTP_HOST and MAIL_FROM must be given together']),
    ...((user === undefined) === (password === undefined)
      ? []
      : ['SMTP_USER and SMTP_PASSWORD must be given together']),
    ...(isPlain ? ['SMTP_USER: the password would be sent in the clear with SMTP_SECURITY=none'] : []),
  ];
}

/** A setting in effect, and its source. */
export interface ExplainedSetting {
  readonly name: string;
  readonly setting: string;
  /** Undefined when it is off or derived; a secret is masked, and so is the password of an address. */
  readonly value: string | undefined;
  readonly source: 'environment' | 'file' | 'default';
}

/** Returns every setting as it was given, valid or not: `readConfig` reports mistakes. */
export function explainConfig(environment: Environment = process.env): ExplainedSetting[] {
  const file = readFile(environment);
  return Object.entries(settings).flatMap(([section, definitions]) =>
    (Object.entries(definitions) as [string, Setting<unknown>][]).map(([name, definition]) => {
      const given = findGiven(definition, [section, name], environment, file.values, file.name);
      const value = given === undefined ? undefined : definition.secret ? MASK : formatValue(given.value);
      const setting = `${section}.${toSnakeCase(name)}`;
      return { name: definition.env, setting, value, source: given?.from ?? 'default' };
    }),
  );
}

function formatValue(value: unknown): string {
  return maskPasswords(typeof value === 'string' ? value : JSON.stringify(value));
}

interface Given {
  readonly from: ExplainedSetting['source'];
  readonly source: string;
  readonly value: unknown;
}

function findGiven(
  definition: Setting<unknown>,
  [section, name]: [string, string],
  environment: Environment,
  file: Record<string, unknown>,
  fileName: string,
): Given | undefined {
  const variable = environment[definition.env];
  if (variable !== undefined && variable !== '')
    return { from: 'environment', source: definition.env, value: variable };
  const value = (file[section] as Record<string, unknown> | undefined)?.[toSnakeCase(name)];
  if (value !== undefined)
    return { from: 'file', source: `${definition.env} (${section}.${toSnakeCase(name)} in ${fileName})`, value };
  return definition.fallback === undefined
    ? undefined
    : { from: 'default', source: definition.env, value: definition.fallback };
}

function parseSetting(definition: Setting<unknown>, given: Given | undefined, mistakes: string[]): unknown {
  if (given === undefined) return undefined;
  const parsed = definition.schema.safeParse(given.value);
  if (parsed.success) return parsed.data;
  const shown = definition.secret ? '' : `, got ${maskPasswords(JSON.stringify(given.value))}`;
  mistakes.push(`${given.source}: ${parsed.error.issues[0]?.message ?? 'is not valid'}${shown}`);
  return undefined;
}

function findUnknownNames(file: Record<string, unknown>, fileName: string): string[] {
  return Object.entries(file).flatMap(([section, values]) => {
    const known = Object.hasOwn(settings, section) ? settings[section as keyof Settings] : undefined;
    if (known === undefined)
      return [`${section} in ${fileName}: no such section, allowed are ${Object.keys(settings).join(', ')}`];
    const names = Object.keys(known).map(toSnakeCase);
    if (typeof values !== 'object' || values === null) return [`${section} in ${fileName}: must be a table`];
    return Object.keys(values)
      .filter((name) => !names.includes(name))
      .map(
        (name) =>
          `${section}.${name} in ${fileName}: no such setting, ${hintAtOther(section, name)}allowed are ${names.join(', ')}`,
      );
  });
}

/** Names the setting of another section that may be meant: `grpc.port` is `server.grpc_port`, `grpc.host` is `server.host`. */
function hintAtOther(section: string, name: string): string {
  const others = Object.entries(settings).flatMap(([other, definitions]) =>
    Object.keys(definitions).map((known) => ({ other, known: toSnakeCase(known) })),
  );
  const meant =
    others.find(({ known }) => known === `${section}_${name}`) ?? others.find(({ known }) => known === name);
  return meant === undefined ? '' : `did you mean ${meant.other}.${meant.known}? In ${section} `;
}

/** Settings of the person at the command line, not of the service. */
export interface UserEnvironment {
  /** The folder for what this person chose: `$XDG_CONFIG_HOME/trivet`. Undefined without a home. */
  readonly configFolder: string | undefined;
  /** The address of a running service, for commands. */
  readonly url: string | undefined;
  readonly token: string | undefined;
  /** The account that runs this command with sudo. */
  readonly sudoUser: string | undefined;
}

export function readUserEnvironment(environment: Environment = process.env): UserEnvironment {
  const { XDG_CONFIG_HOME, HOME, TRIVET_URL, TRIVET_TOKEN, SUDO_USER } = environment;
  const base = XDG_CONFIG_HOME || (HOME ? `${HOME}/.config` : undefined);
  return {
    configFolder: base === undefined ? undefined : `${base}/trivet`,
    url: TRIVET_URL || undefined,
    token: TRIVET_TOKEN || undefined,
    sudoUser: SUDO_USER || undefined,
  };
}

/** `httpPort` → `http_port`, as it is written in a file. */
export function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

interface ConfigFile {
  readonly name: string;
  readonly values: Record<string, unknown>;
}

const DEFAULT_FILES = ['trivet.toml', 'trivet.json'];

function readFile(environment: Environment): ConfigFile {
  const name = environment.TRIVET_CONFIG || DEFAULT_FILES.find((candidate) => existsSync(candidate));
  if (name === undefined) return { name: 'file', values: {} };
  try {
    const content = readFileSync(name, 'utf8');
    return {
      name,
      values: (name.endsWith('.json') ? JSON.parse(content) : parseToml(content)) as Record<string, unknown>,
    };
  } catch (error) {
    throw new Failure('invalid', `Cannot read the configuration file "${name}": ${describeMistake(error)}`);
  }
}

/** The message of a TOML error continues with the lines around the mistake, which may hold a secret. */
function describeMistake(error: unknown): string {
  if (!(error instanceof TomlError)) return describeError(error);
  const [reason] = error.message.split('\n');
  return `${reason} (line ${error.line} column ${error.column})`;
}
