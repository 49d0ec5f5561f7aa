import protobuf from 'protobufjs';

const root = protobuf.loadSync('proto/prediction/v1/prediction.proto');

/** A PredictRequest as a gateway would send it. */
export function createRequest(candidates: number): Uint8Array {
  const type = root.lookupType('prediction.v1.PredictRequest');
  const inputs = Array.from({ length: candidates }, (_, index) => ({
    inputId: index + 1,
    podType: 'decode',
    inputTokenLength: 1000 + index * 37,
    prefixCacheScore: (index % 10) / 10,
    numRequestWaiting: index % 5,
    numRequestRunning: 3 + (index % 20),
    kvCacheUsage: 0.3 + (index % 60) / 100,
    inflightTokens: 5000 + index * 211,
    hbmUtilization: 0.7,
    aiCoreUtilization: 0.5,
    bandwidthUtilization: 0.4,
    serverIp: nameServer(index),
  }));
  return type.encode(type.fromObject({ targetModel: 'qwen3-32b', inputs })).finish();
}

/** An answer to it, for servers that predict nothing: as many bytes as ours has. */
export function createAnswer(candidates: number): Uint8Array {
  const type = root.lookupType('prediction.v1.PredictResponse');
  const outputs = Array.from({ length: candidates }, (_, index) => ({
    inputId: index + 1,
    serverIp: nameServer(index),
    predictedTtftMillis: 123.456,
    predictedTpotMillis: 12.3456,
  }));
  const metadata = { targetModel: 'qwen3-32b', modelVersion: 'qwen3-32b@1' };
  return type.encode(type.fromObject({ outputs, metadata })).finish();
}

function nameServer(index: number): string {
  return `10.12.${index % 16}.${100 + (index % 100)}`;
}
