/** Lists the settings of the process: listeners, TLS, limits, the database and the size of its connection pool, log and traces. */
import { z } from 'zod';
import { isAddressOrCidr } from './network-names.ts';
import { choice, fileMode, flag, httpOrigin, httpUrl, integer, key, list, optional, setting, text } from './setting.ts';

export const serverSettings = {
  host: setting({
    env: 'HOST',
    about: 'Address that HTTP and gRPC listen on.',
    schema: text,
    fallback: '127.0.0.1',
  }),
  httpPort: setting({
    env: 'HTTP_PORT',
    about: 'Port of HTTP; 0 takes any free port and prints it.',
    schema: integer(0, 65535),
    fallback: '8080',
  }),
  grpcPort: setting({
    env: 'GRPC_PORT',
    about: 'Port of gRPC; 0 takes any free port and prints it.',
    schema: integer(0, 65535),
    fallback: '50051',
  }),
  baseUrl: optional({
    env: 'BASE_URL',
    about: 'Address of the resource API as clients see it. Defaults to the HTTP address.',
    schema: httpUrl,
  }),
  authUrl: optional({
    env: 'AUTH_URL',
    about:
      'Address of the authorization server as clients see it, and its issuer name. It must have no path. Defaults to the HTTP address.',
    schema: httpOrigin,
  }),
  parts: setting({
    env: 'PARTS',
    about: 'Which areas this process starts.',
    schema: list(choice('prediction', 'authorization', 'webhooks'))
      .refine((parts) => parts.length > 0, 'must name at least one part')
      .refine((parts) => new Set(parts).size === parts.length, 'must name each part once'),
    fallback: 'prediction,authorization,webhooks',
  }),
  stopTimeoutMs: setting({
    env: 'STOP_TIMEOUT_MS',
    about: 'How long a stop waits for running calls before it ends them, in milliseconds.',
    schema: integer(0, 600_000),
    fallback: '15000',
  }),
  maxBodyBytes: setting({
    env: 'HTTP_MAX_BODY_BYTES',
    about:
      'Largest accepted HTTP request body, in bytes: of an event, a report or a prediction. Bodies of named parameters, as forms, have at most 16 KiB, those of applications, repositories, webhooks and personal tokens on the pages 160 KiB, of at most 49,152 characters. All bodies together take 64 MiB: beyond it, one that still arrives is refused with 503, first of a network that has more than half.',
    schema: integer(1024, 1_073_741_824),
    fallback: '1048576',
  }),
  maxHttpConnections: setting({
    env: 'HTTP_MAX_CONNECTIONS',
    about:
      'Connections of HTTP at a time, at most a quarter of the open files that the system allows. At the limit, a new one replaces one of the network with the most: the one without a request for longest, or else the one that has waited for its client for longest, each for a second at least, or else one without a request for less. Without such a one, it is refused unless another network has more.',
    schema: integer(1, 1_000_000),
    fallback: '1000',
  }),
  trustedProxies: setting({
    env: 'TRUSTED_PROXIES',
    about:
      'Addresses or CIDR ranges of the proxies in front. Only the address that they write in X-Forwarded-For counts as that of a caller, by which guesses are limited. Each of their connections counts as a separate network when connections are limited.',
    schema: list(z.string().refine(isAddressOrCidr, 'must be addresses or ranges as 10.1.0.0/16 or fd00::/8')),
    fallback: '',
  }),
} as const;

export const grpcSettings = {
  unixSocket: optional({
    env: 'GRPC_UNIX_SOCKET',
    about: 'Path of a unix socket on which gRPC listens too.',
    schema: text,
  }),
  unixSocketMode: optional({
    env: 'GRPC_UNIX_SOCKET_MODE',
    about:
      'Permissions of that socket in octal digits, as text (`"660"` in a file). A caller needs the right to write: 660 lets callers of the same group connect, 666 all. Defaults to what the umask leaves, with which only the same user connects.',
    schema: fileMode,
  }),
  maxMessageBytes: setting({
    env: 'GRPC_MAX_MESSAGE_BYTES',
    about: 'Largest accepted gRPC message, in bytes.',
    schema: integer(1024, 1_073_741_824),
    fallback: '4194304',
  }),
  maxConnections: setting({
    env: 'GRPC_MAX_CONNECTIONS',
    about:
      'Connections of gRPC at a time, at most half of the open files that the system allows. At the limit, a new connection replaces one of the network with the most: the one that has been idle for longest, or else the one that has waited for its client for longest, with all its calls, each for a second at least, or else one that has been idle for less. Without such a one, it is refused unless another network has more.',
    schema: integer(1, 1_000_000),
    fallback: '1000',
  }),
  bufferBytes: setting({
    env: 'GRPC_BUFFER_BYTES',
    about:
      'Memory for gRPC requests that are not complete and answers that wait for their readers, of all connections, in bytes; at least four of the largest messages.',
    schema: integer(1_048_576, 17_179_869_184),
    fallback: '67108864',
  }),
  tlsCertFile: optional({
    env: 'GRPC_TLS_CERT_FILE',
    about: 'Certificate chain (PEM) of the gRPC listener; with it and the key, gRPC speaks TLS.',
    schema: text,
  }),
  tlsKeyFile: optional({ env: 'GRPC_TLS_KEY_FILE', about: 'Private key (PEM) of that certificate.', schema: text }),
  tlsClientCaFile: optional({
    env: 'GRPC_TLS_CLIENT_CA_FILE',
    about: 'Authorities (PEM) that must have signed a client certificate; with it, clients must show one (mTLS).',
    schema: text,
  }),
  reflection: setting({
    env: 'GRPC_REFLECTION',
    about: 'Whether server reflection is served.',
    schema: flag,
    fallback: 'true',
  }),
} as const;

export const storeSettings = {
  dataDir: setting({
    env: 'TRIVET_DATA_DIR',
    about: 'Folder of the embedded store and its keys, created if missing. Must be on a local disk.',
    schema: text,
    fallback: './data',
  }),
  databaseUrl: optional({
    env: 'DATABASE_URL',
    about:
      'PostgreSQL 15 or newer, as postgres://user:password@host/database; of several hosts (`@one:5432,two:5432/`) the one that accepts writes is used. Without it, SQLite in the data folder.',
    schema: text.refine((value) => /^postgres(ql)?:/.test(value), 'must start with postgres:// or postgresql://'),
    secret: true,
  }),
  poolSize: setting({
    env: 'DATABASE_POOL_SIZE',
    about: 'The most connections to PostgreSQL of this process.',
    schema: integer(1, 1000),
    fallback: '10',
  }),
  secretKeys: optional({
    env: 'SECRET_KEYS',
    about:
      'Keys that encrypt stored secrets, each base64 of 32 bytes: the first encrypts, all decrypt. Without it, the file `keys` in the data folder, created at the first start.',
    schema: list(key(32)),
    secret: true,
  }),
} as const;

export const logSettings = {
  level: setting({
    env: 'LOG_LEVEL',
    about: 'The lowest severity of the lines that are written.',
    schema: choice('trace', 'debug', 'info', 'warn', 'error', 'silent'),
    fallback: 'info',
  }),
  format: setting({
    env: 'LOG_FORMAT',
    about: 'How lines are written: `json`, `text` for people, or `auto`: text on a terminal, else JSON.',
    schema: choice('auto', 'json', 'text'),
    fallback: 'auto',
  }),
} as const;

export const tracingSettings = {
  endpoint: optional({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    about:
      'Address of an OpenTelemetry collector (OTLP over HTTP, without /v1/traces) that spans of HTTP requests and gRPC calls are sent to; without it, no spans are sent.',
    schema: httpUrl,
  }),
  headers: optional({
    env: 'OTEL_EXPORTER_OTLP_HEADERS',
    about: 'Headers for the collector, each as `name=value`.',
    schema: list(z.string().regex(/^[\w-]+=/, 'must be name=value')),
    secret: true,
  }),
  serviceName: setting({
    env: 'OTEL_SERVICE_NAME',
    about: 'Name of this service in traces.',
    schema: text,
    fallback: 'trivet',
  }),
  sampleRatio: setting({
    env: 'OTEL_TRACES_SAMPLER_ARG',
    about:
      'Sampled share of the requests without a traced caller, 0 to 1. The sampling decision of a traced caller is followed.',
    schema: z.coerce
      .number('must be a number from 0 to 1')
      .refine((value) => value >= 0 && value <= 1, 'must be a number from 0 to 1'),
    fallback: '1',
  }),
} as const;
