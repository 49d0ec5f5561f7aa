/** Calls Predict over TLS with Go's and Python's own TLS: with the cipher suites that HTTP/2 allows, and with no others. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createCertificate } from '../support/basics/certificate.ts';
import { runTool, skipWithout } from '../support/basics/client-tools.ts';
import { startProgram } from '../support/programs/start-program.ts';

const PYTHON = '/usr/bin/python3';
const skipGo = skipWithout('golang-go', ['go', 'version']);
const skipPython = skipWithout('python3-grpcio', [PYTHON, '-c', 'import grpc']);
const CALL = `
import grpc, sys
credentials = grpc.ssl_channel_credentials(open(sys.argv[2], 'rb').read())
call = grpc.secure_channel(sys.argv[1], credentials).unary_unary('/prediction.v1.PredictionService/Predict')
print(len(call(b'\\n\\x01m', timeout=10)) > 0)
`;

/** RFC 9113, section 9.2.2 and appendix A: of TLS 1.2, key exchange with ECDHE and an AEAD cipher. */
const isAllowed = (suite: string) => /^TLS_ECDHE_.*(GCM|CHACHA20)/.test(suite);

function startWithTls(kind: 'ec' | 'rsa') {
  const { certFile, keyFile } = createCertificate(kind);
  const settings = { PARTS: 'prediction', GRPC_TLS_CERT_FILE: certFile, GRPC_TLS_KEY_FILE: keyFile };
  return startProgram(settings).then((program) => ({ program, certFile }));
}

for (const kind of ['ec', 'rsa'] as const) {
  test(`calls of Go come over TLS 1.3 with each curve, and over TLS 1.2 with each allowed suite (${kind})`, {
    skip: skipGo,
  }, async (t) => {
    const { program, certFile } = await startWithTls(kind);
    t.after(() => program[Symbol.asyncDispose]());
    const cache = mkdtempSync(join(tmpdir(), 'trivet-go-'));
    t.after(() => rmSync(cache, { recursive: true, force: true }));
    const address = program.grpcAddress.replace('127.0.0.1', 'localhost');
    const command = ['go', 'run', 'tls-client.go', address, certFile] as const;
    const lines = await runTool('test/clients', command, { GO111MODULE: 'off', GOFLAGS: '', GOCACHE: cache });
    const outcomes = lines.trim().split('\n');
    for (const line of outcomes) {
      const [suite = '', outcome] = line.split(': ');
      const isOwn = !suite.startsWith('TLS_') || suite.includes(kind === 'ec' ? '_ECDSA_' : '_ECDHE_RSA_');
      const isAnswered = isOwn && (!suite.startsWith('TLS_') || isAllowed(suite));
      assert.equal(outcome, isAnswered ? 'HTTP/2.0 0' : 'refused', line);
    }
    assert.equal(outcomes.filter((line) => line.endsWith('HTTP/2.0 0')).length, 5 + 3);
  });

  test(`calls of grpcio for Python come over TLS (${kind})`, { skip: skipPython }, async (t) => {
    const { program, certFile } = await startWithTls(kind);
    t.after(() => program[Symbol.asyncDispose]());
    const address = program.grpcAddress.replace('127.0.0.1', 'localhost');
    assert.equal(await runTool('.', [PYTHON, '-c', CALL, address, certFile]), 'True\n');
  });
}
