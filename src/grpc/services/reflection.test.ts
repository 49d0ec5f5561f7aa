import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import protobuf from 'protobufjs';
import 'protobufjs/ext/descriptor.js';
import type { GrpcCall } from '../call/service.ts';
import { createReflection } from './reflection.ts';

const descriptorSet = readFileSync('src/gen/descriptors.binpb');

interface Answer {
  listServicesResponse?: { service: { name: string }[] };
  fileDescriptorResponse?: { fileDescriptorProto: Uint8Array[] };
  errorResponse?: { errorCode: number; errorMessage: string };
}

const services = createReflection(descriptorSet, ['prediction.v1.PredictionService', 'grpc.health.v1.Health']);

async function ask(version: string, question: object): Promise<Answer> {
  const root = protobuf.loadSync(`proto/grpc/reflection/${version}/reflection.proto`);
  const Request = root.lookupType('ServerReflectionRequest');
  const Response = root.lookupType('ServerReflectionResponse');
  const method = services.find((service) => service.name.includes(`.${version}.`))?.methods[0];
  assert.ok(method?.kind === 'stream');
  const request = Request.encode(Request.fromObject({ host: 'here', ...question })).finish();
  const [bytes] = await Array.fromAsync(method.handle(streamOf(request), {} as GrpcCall));
  const answer = Response.toObject(Response.decode(bytes!), { defaults: true });
  assert.equal(answer.validHost, 'here');
  assert.deepEqual(answer.originalRequest, { host: 'here', ...question });
  return answer;
}

async function* streamOf(message: Uint8Array): AsyncGenerator<Uint8Array> {
  yield message;
}

async function readNames(answer: Answer): Promise<string[]> {
  const set = answer.fileDescriptorResponse?.fileDescriptorProto ?? [];
  const { FileDescriptorProto } = (await import('protobufjs/ext/descriptor.js')).default as unknown as {
    FileDescriptorProto: protobuf.Type;
  };
  return set.map((bytes) => (FileDescriptorProto.decode(bytes) as unknown as { name: string }).name);
}

for (const version of ['v1', 'v1alpha']) {
  test(`reflection ${version} lists the services`, async () => {
    const answer = await ask(version, { listServices: '' });
    assert.deepEqual(
      answer.listServicesResponse?.service.map((service) => service.name),
      [
        'grpc.health.v1.Health',
        'grpc.reflection.v1.ServerReflection',
        'grpc.reflection.v1alpha.ServerReflection',
        'prediction.v1.PredictionService',
      ],
    );
  });

  for (const symbol of [
    'prediction.v1.PredictionService',
    'prediction.v1.PredictionService.Predict',
    'prediction.v1.PredictInput',
    'prediction.v1.PredictInput.server_ip',
  ])
    test(`reflection ${version} finds the file that declares ${symbol}`, async () => {
      const answer = await ask(version, { fileContainingSymbol: symbol });
      assert.deepEqual(await readNames(answer), ['prediction/v1/prediction.proto']);
    });

  test(`reflection ${version} answers a file with all that it imports`, async () => {
    const answer = await ask(version, { fileByFilename: 'observation/v1/observation.proto' });
    assert.deepEqual((await readNames(answer)).toSorted(), [
      'google/protobuf/timestamp.proto',
      'observation/v1/observation.proto',
      'prediction/v1/prediction.proto',
    ]);
  });

  test(`reflection ${version} says NOT_FOUND of what it does not know`, async () => {
    for (const question of [
      { fileContainingSymbol: 'no.Such' },
      { fileByFilename: 'no.proto' },
      { allExtensionNumbersOfType: 'prediction.v1.PredictInput' },
    ])
      assert.equal((await ask(version, question)).errorResponse?.errorCode, 5);
  });

  test(`reflection ${version} repeats at most 1,000 characters of what it does not know in its error`, async () => {
    const answer = await ask(version, { fileContainingSymbol: 'x'.repeat(100_000) });
    assert.equal(answer.errorResponse?.errorMessage.length, 1000);
  });
}
