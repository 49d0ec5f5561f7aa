/** Parses the parts of DATABASE_URL that the driver does not read: several hosts, which of them to use, prepared statements. */
import { Failure } from '../../errors.ts';

export interface DatabaseHost {
  readonly host: string;
  readonly port: number;
}

export interface DatabaseUrl {
  /** The URL for the driver, with the first host only. */
  readonly connectionString: string;
  /** The hosts among which to find the primary. Empty for a single host without `target_session_attrs`: no search. */
  readonly hosts: readonly DatabaseHost[];
  readonly isPrepared: boolean;
}

const DEFAULT_PORT = 5432;
const FORM = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?]*)(.*)$/s;
const WRITABLE = ['read-write', 'primary'];

/** Throws `invalid`, without quoting the URL, which may have a password. */
export function parseDatabaseUrl(databaseUrl: string): DatabaseUrl {
  const [, start = '', hostList = '', rest = ''] = FORM.exec(databaseUrl) ?? [];
  const [path = '', query = ''] = rest.split('?', 2);
  const parameters = new URLSearchParams(query);
  const attributes = takeParameter(parameters, 'target_session_attrs', WRITABLE);
  const prepared = takeParameter(parameters, 'prepared_statements', ['true', 'false']);
  if (parameters.get('host')?.includes(','))
    throw refuse('several hosts must be written as postgres://user@one:5432,two:5432/database');
  const entries = hostList.split(',');
  const isSearched = entries.length > 1 || attributes !== undefined;
  const cleaned = parameters.size > 0 ? `?${parameters.toString()}` : '';
  const isKept = entries.length === 1 && attributes === undefined && prepared === undefined;
  return {
    connectionString: isKept ? databaseUrl : `${start}${entries[0]}${path}${cleaned}`,
    hosts: isSearched ? entries.map(parseHost) : [],
    isPrepared: prepared !== 'false',
  };
}

function takeParameter(parameters: URLSearchParams, name: string, allowed: readonly string[]): string | undefined {
  const value = parameters.get(name) ?? undefined;
  if (value !== undefined && !allowed.includes(value)) throw refuse(`${name} must be ${allowed.join(' or ')}`);
  parameters.delete(name);
  return value;
}

function parseHost(entry: string): DatabaseHost {
  const [, bracketed, name, port = String(DEFAULT_PORT)] =
    /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(entry) ?? [];
  const host = bracketed ?? name;
  if (host === undefined) throw refuse('each of several hosts must be a name or an address, and a port if need be');
  return { host, port: Number(port) };
}

function refuse(reason: string): Failure {
  return new Failure('invalid', `Cannot read DATABASE_URL: ${reason}`);
}
