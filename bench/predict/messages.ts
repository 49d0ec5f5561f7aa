import protobuf from 'protobufjs';

const root = protobuf.loadSync('proto/prediction/v1/prediction.proto');

/** The number of messages; each has other loads of the servers. */
const REQUESTS = 61;

/** PredictRequests as a gateway would send them, equally long. */
export function createRequests(candidates: number): Uint8Array[] {
  return Array.from({ length: REQUESTS }, (_, turn) => createRequest(candidates, turn));
}

/** In each turn, the servers exchange the loads of the turn before. */
export function createRequest(candidates: number, turn = 0): Uint8Array {
  const type = root.lookupType('prediction.v1.PredictRequest');
  const inputs = Array.from({ length: candidates }, (_, index) => createInput(index, (index + turn) % candidates));
  return type.encode(type.fromObject({ targetModel: 'qwen3-32b', inputs })).finish();
}

/** The server of this index under one of the loads. */
export function createInput(index: number, load: number) {
  return {
    inputId: index + 1,
    podType: 'decode',
    inputTokenLength: 1000 + load * 37,
    prefixCacheScore: (load % 10) / 10,
    numRequestWaiting: load % 5,
    numRequestRunning: 3 + (load % 20),
    kvCacheUsage: 0.3 + (load % 60) / 100,
    inflightTokens: 5000 + load * 211,
    hbmUtilization: 0.7,
    aiCoreUtilization: 0.5,
    bandwidthUtilization: 0.4,
    serverIp: nameServer(index),
  };
}

/** Returns an answer for servers that do not predict, with as many bytes as ours. */
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
