import { isIP } from 'node:net';
import { z } from 'zod';
import { choice, fileMode, flag, httpOrigin, httpUrl, integer, key, list, optional, setting, text } from './setting.ts';

/**
 * Every setting there is, by section. The section and the name, in snake case, are its place in `trivet.toml`;
 * `docs/reference/configuration.md` is generated from this table.
 */
export const settings = {
  server: {
    host: setting({
      env: 'HOST',
      about: 'Address that HTTP and gRPC listen on.',
      schema: text,
      fallback: '127.0.0.1',
    }),
    httpPort: setting({
      env: 'HTTP_PORT',
      about: 'Port of HTTP; 0 takes any free one and prints it.',
      schema: integer(0, 65535),
      fallback: '8080',
    }),
    grpcPort: setting({
      env: 'GRPC_PORT',
      about: 'Port of gRPC; 0 takes any free one and prints it.',
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
      schema: list(choice('prediction', 'authorization', 'webhooks')),
      fallback: 'prediction,authorization,webhooks',
    }),
    stopTimeoutMs: setting({
      env: 'STOP_TIMEOUT_MS',
      about: 'How long a stop waits for calls under way before it ends them, in milliseconds.',
      schema: integer(0, 600_000),
      fallback: '15000',
    }),
    maxBodyBytes: setting({
      env: 'HTTP_MAX_BODY_BYTES',
      about:
        'Largest accepted HTTP request body, in bytes: of an event, a report or a prediction. Bodies with parameters have 16 KB.',
      schema: integer(1024, 1_073_741_824),
      fallback: '1048576',
    }),
    maxHttpConnections: setting({
      env: 'HTTP_MAX_CONNECTIONS',
      about:
        'Connections of HTTP at a time, at most a quarter of the open files that the system allows. A new one takes the place of the oldest that waits for its client.',
      schema: integer(1, 1_000_000),
      fallback: '1000',
    }),
    trustedProxies: setting({
      env: 'TRUSTED_PROXIES',
      about:
        'Addresses or CIDR ranges of the proxies in front. Only what they say in X-Forwarded-For counts as the address of a caller, by which guesses are limited.',
      schema: list(z.string().refine(isAddressOrCidr, 'must be addresses or ranges as 10.1.0.0/16 or fd00::/8')),
      fallback: '',
    }),
  },
  grpc: {
    unixSocket: optional({
      env: 'GRPC_UNIX_SOCKET',
      about: 'Path of a unix socket on which gRPC listens too.',
      schema: text,
    }),
    unixSocketMode: optional({
      env: 'GRPC_UNIX_SOCKET_MODE',
      about:
        'Permissions of that socket in octal digits. A caller needs the right to write: 660 lets callers of the same group connect, 666 all. Defaults to what the umask leaves, with which only the same user connects.',
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
        'Connections of gRPC at a time, at most half of the open files that the system allows. At the limit, a new connection replaces the connection that has been idle for longest.',
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
  },
  store: {
    dataDir: setting({
      env: 'TRIVET_DATA_DIR',
      about: 'Folder of the embedded store and its keys; made when absent. Must be on a local disk.',
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
      about: 'Connections to PostgreSQL that this process may hold.',
      schema: integer(1, 1000),
      fallback: '10',
    }),
    secretKeys: optional({
      env: 'SECRET_KEYS',
      about:
        'Keys that encrypt stored secrets, each base64 of 32 bytes: the first encrypts, all decrypt. Without it, the file `keys` in the data folder, made at the first start.',
      schema: list(key(32)),
      secret: true,
    }),
  },
  log: {
    level: setting({
      env: 'LOG_LEVEL',
      about: 'Least severe line that is written.',
      schema: choice('trace', 'debug', 'info', 'warn', 'error', 'silent'),
      fallback: 'info',
    }),
    format: setting({
      env: 'LOG_FORMAT',
      about: 'How lines are written: `json`, `text` for people, or `auto`: text on a terminal, else JSON.',
      schema: choice('auto', 'json', 'text'),
      fallback: 'auto',
    }),
  },
  tracing: {
    endpoint: optional({
      env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      about:
        'Address of an OpenTelemetry collector (OTLP over HTTP, without /v1/traces) that spans of HTTP requests and gRPC calls are sent to; none unless given.',
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
        'Part of the requests without a traced caller whose spans are sent, 0 to 1. What a caller decided about its trace is followed.',
      schema: z.coerce
        .number('must be a number from 0 to 1')
        .refine((value) => value >= 0 && value <= 1, 'must be a number from 0 to 1'),
      fallback: '1',
    }),
  },
  authorization: {
    accessTokenSeconds: setting({
      env: 'ACCESS_TOKEN_SECONDS',
      about: 'Lifetime of an access token, in seconds.',
      schema: integer(60, 31_536_000),
      fallback: '1296000',
    }),
    codeSeconds: setting({
      env: 'AUTHORIZATION_CODE_SECONDS',
      about: 'Lifetime of an authorization code, in seconds.',
      schema: integer(10, 600),
      fallback: '60',
    }),
    refreshIdleDays: setting({
      env: 'REFRESH_IDLE_DAYS',
      about: 'Days after which an unused refresh token expires.',
      schema: integer(1, 3650),
      fallback: '90',
    }),
    refreshMaxDays: setting({
      env: 'REFRESH_MAX_DAYS',
      about: 'How long a grant can be refreshed at all, in days; then the user is asked again.',
      schema: integer(1, 3650),
      fallback: '365',
    }),
    refreshGraceSeconds: setting({
      env: 'REFRESH_GRACE_SECONDS',
      about:
        'How long a refresh token that was used answers once more with the same tokens, in seconds: an answer can get lost.',
      schema: integer(0, 600),
      fallback: '30',
    }),
    auditDays: setting({
      env: 'AUDIT_RETENTION_DAYS',
      about: 'How long an event stays in the audit log, in days.',
      schema: integer(1, 36_500),
      fallback: '365',
    }),
    upstreamIssuer: optional({
      env: 'UPSTREAM_ISSUER',
      about: 'Issuer of an OpenID provider that people may sign in with too, exactly as its metadata names it.',
      schema: text.refine((value) => URL.canParse(value) && /^https?:/.test(value), 'must be an http or https URL'),
    }),
    upstreamName: setting({
      env: 'UPSTREAM_NAME',
      about: 'How the pages call that provider.',
      schema: text,
      fallback: 'your company account',
    }),
    upstreamClientId: optional({
      env: 'UPSTREAM_CLIENT_ID',
      about:
        'Client id that the provider knows this service by. Its redirect URI there is AUTH_URL/sign-in/upstream/callback.',
      schema: text,
    }),
    upstreamClientSecret: optional({
      env: 'UPSTREAM_CLIENT_SECRET',
      about: 'Client secret at that provider; without it this service is a public client there.',
      schema: text,
      secret: true,
    }),
    upstreamScope: setting({
      env: 'UPSTREAM_SCOPE',
      about: 'What to ask that provider for.',
      schema: text,
      fallback: 'openid profile email',
    }),
    upstreamSignUp: setting({
      env: 'UPSTREAM_SIGN_UP',
      about:
        'Whether a person of the provider who has no linked account here gets a new account (`open`) or is refused (`closed`).',
      schema: choice('closed', 'open'),
      fallback: 'closed',
    }),
  },
  mail: {
    host: optional({
      env: 'SMTP_HOST',
      about: 'Mail server (SMTP) that mails to people are sent by. Without it, no mail is sent.',
      schema: text,
    }),
    port: optional({
      env: 'SMTP_PORT',
      about: 'Its port. Defaults to 587 with `starttls`, 465 with `tls` and 25 with `none`.',
      schema: integer(1, 65535),
    }),
    security: setting({
      env: 'SMTP_SECURITY',
      about:
        'How the connection is encrypted: `starttls` (nothing is sent without it), `tls` from the first byte, or `none`.',
      schema: choice('starttls', 'tls', 'none'),
      fallback: 'starttls',
    }),
    user: optional({
      env: 'SMTP_USER',
      about: 'Name that the service signs in with at the mail server.',
      schema: text,
    }),
    password: optional({
      env: 'SMTP_PASSWORD',
      about: 'Password of that name.',
      schema: text,
      secret: true,
    }),
    caFile: optional({
      env: 'SMTP_CA_FILE',
      about:
        'Certificates (PEM) of authorities of your own that the mail server may have its certificate from, in place of the public authorities.',
      schema: text,
    }),
    from: optional({
      env: 'MAIL_FROM',
      about: 'Sender of the mails, as `trivet@example.org` or `Trivet <trivet@example.org>`.',
      schema: text.refine(
        isSender,
        'must be an email address, or a name and an address as Trivet <trivet@example.org>',
      ),
    }),
  },
  prediction: {
    auth: setting({
      env: 'PREDICTION_AUTH',
      about:
        'Who may call the prediction service: `auto` asks for a bearer token (scope `predict` or `observe`, or any that is not narrow) unless the caller is on loopback or a unix socket, `on` always asks, `off` never.',
      schema: choice('auto', 'on', 'off'),
      fallback: 'auto',
    }),
    unknownModel: setting({
      env: 'PREDICTION_UNKNOWN_MODEL',
      about:
        'What to do for a target model that has no trained version: `prior` answers from the prior, `reject` answers NOT_FOUND.',
      schema: choice('prior', 'reject'),
      fallback: 'prior',
    }),
    learning: setting({
      env: 'PREDICTION_LEARNING',
      about: 'Whether this process learns models again from what is reported. Reports are kept either way.',
      schema: flag,
      fallback: 'true',
    }),
    refitRows: setting({
      env: 'PREDICTION_REFIT_ROWS',
      about: 'Observations after which a model is learned again.',
      schema: integer(50, 1_000_000),
      fallback: '1000',
    }),
    refitSeconds: setting({
      env: 'PREDICTION_REFIT_SECONDS',
      about: 'Seconds after which a model is learned again when at least 50 observations came meanwhile.',
      schema: integer(1, 86_400),
      fallback: '300',
    }),
    scrape: optional({
      env: 'PREDICTION_SCRAPE',
      about:
        'Servers whose load this process reads by itself, for rows that bring none: `http://host:port/metrics` or `NAME=http://host:port/metrics` with commas between them, or the path of a file that has them. NAME is what callers send as server_ip; the address stands for it otherwise.',
      schema: text,
    }),
    scrapeIntervalMs: setting({
      env: 'PREDICTION_SCRAPE_INTERVAL_MS',
      about: 'How long to wait between two scrapes of all servers, in milliseconds.',
      schema: integer(50, 60_000),
      fallback: '500',
    }),
    scrapeTimeoutMs: setting({
      env: 'PREDICTION_SCRAPE_TIMEOUT_MS',
      about: 'How long a scrape of one server may take, in milliseconds.',
      schema: integer(50, 60_000),
      fallback: '1000',
    }),
    scrapeStaleMs: setting({
      env: 'PREDICTION_SCRAPE_STALE_MS',
      about: 'How old scraped numbers may be, in milliseconds. Rows that need older ones are omitted from the answer.',
      schema: integer(100, 600_000),
      fallback: '5000',
    }),
    headroomTtftMs: optional({
      env: 'PREDICTION_HEADROOM_TTFT_MS',
      about:
        'Limit of TTFT, in milliseconds, by which the headroom of each server is worked out for autoscalers. With it or the limit of TPOT, `/metrics` has `trivet_prediction_headroom_requests`.',
      schema: integer(1, 86_400_000),
    }),
    headroomTpotMs: optional({
      env: 'PREDICTION_HEADROOM_TPOT_MS',
      about: 'Limit of TPOT for the headroom, in milliseconds.',
      schema: integer(1, 86_400_000),
    }),
    headroomPercent: setting({
      env: 'PREDICTION_HEADROOM_PERCENT',
      about: 'Percent of the requests that must stay below these limits.',
      schema: integer(50, 99),
      fallback: '90',
    }),
    headroomOutputTokens: setting({
      env: 'PREDICTION_HEADROOM_OUTPUT_TOKENS',
      about: 'Mean length of an answer, in tokens, for the headroom.',
      schema: integer(1, 1_000_000),
      fallback: '200',
    }),
    tracesKvCapacityTokens: optional({
      env: 'PREDICTION_TRACES_KV_CAPACITY_TOKENS',
      about:
        'Tokens that the KV cache of one vLLM server holds, by which the load at each request of a trace is worked out. `POST /v1/traces` takes spans only with it.',
      schema: integer(1, 2_147_483_647),
    }),
    tracesHoldSeconds: setting({
      env: 'PREDICTION_TRACES_HOLD_SECONDS',
      about:
        'How long after its start a request of a trace is learned, in seconds. Requests that take longer do not count as load of those that started after them.',
      schema: integer(1, 3600),
      fallback: '120',
    }),
    llmDPort: optional({
      env: 'LLM_D_PORT',
      about:
        'Port on which the predictor interface of llm-d, the Gateway API Inference Extension and KServe is served at the root, for the target model in LLM_D_MODEL; 0 takes any free one and prints it. Below `/llm-d/{target_model}` it is served on the HTTP port as well.',
      schema: integer(0, 65535),
    }),
    llmDModel: optional({
      env: 'LLM_D_MODEL',
      about: 'Target model of that port.',
      schema: text.refine((value) => value.length <= 180, 'must have at most 180 characters'),
    }),
    llmDObjective: setting({
      env: 'LLM_D_OBJECTIVE',
      about: 'What the times in answers of that interface are: a `quantile` of those to expect, or their `mean`.',
      schema: choice('quantile', 'mean'),
      fallback: 'quantile',
    }),
    llmDQuantile: setting({
      env: 'LLM_D_QUANTILE',
      about: 'Which quantile: 0.5, 0.9, 0.95 or 0.99.',
      schema: choice('0.5', '0.9', '0.95', '0.99'),
      fallback: '0.9',
    }),
  },
  webhooks: {
    allowCidrs: setting({
      env: 'WEBHOOK_ALLOW_CIDRS',
      about:
        'Private address ranges that webhooks may be delivered to, as `10.1.0.0/16,::1/128`; for receivers inside your own network.',
      schema: list(z.string().refine(isCidr, 'must be address ranges as 10.1.0.0/16 or fd00::/8')),
      fallback: '',
    }),
    allowHosts: setting({
      env: 'WEBHOOK_ALLOW_HOSTS',
      about:
        'Names of your own network that webhooks may be delivered to, as `jenkins,*.corp`. They count only with `WEBHOOK_ALLOW_CIDRS`, and only while every address of the name is in these ranges. Names of one label, as Compose gives them, have to be listed.',
      schema: list(z.string().toLowerCase().refine(isNamePattern, 'must be names, or patterns as *.corp')),
      fallback: '*.local,*.internal,*.home.arpa,*.localdomain,*.lan,*.home,*.corp',
    }),
    caFile: optional({
      env: 'WEBHOOK_CA_FILE',
      about:
        'Certificates (PEM) of authorities of your own that receivers may have theirs from, beside the public authorities.',
      schema: text,
    }),
  },
} as const;

function isSender(value: string): boolean {
  return /^([^<>"\r\n]+ <[^\s@<>"]+@[^\s@<>"]+>|[^\s@<>"]+@[^\s@<>"]+)$/.test(value);
}

/** `*` alone, `*.` and a name, or a name. */
function isNamePattern(value: string): boolean {
  return /^(\*|(\*\.)?[a-z0-9_]([a-z0-9_-]*)(\.[a-z0-9_][a-z0-9_-]*)*)$/.test(value) && value !== 'localhost';
}

function isAddressOrCidr(value: string): boolean {
  return isIP(value) !== 0 || isCidr(value);
}

function isCidr(value: string): boolean {
  const [address = '', bits = ''] = value.split('/');
  const family = isIP(address);
  return family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}
