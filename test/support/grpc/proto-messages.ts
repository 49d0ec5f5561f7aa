import protobuf from 'protobufjs';

/** The messages of `proto/` through protobufjs, an independent codec with which ours is compared. */
function loadMessages(): protobuf.Root {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, target) => (target.startsWith('google/') ? target : `proto/${baseOf(target)}`);
  root.loadSync(['prediction/v1/prediction.proto', 'observation/v1/observation.proto']);
  root.resolveAll();
  return root;
}

function baseOf(target: string): string {
  return target.replace(/^proto\//, '');
}

const root = loadMessages();

export function messageType(name: string): protobuf.Type {
  return root.lookupType(name);
}

export const PredictRequest = messageType('prediction.v1.PredictRequest');
export const PredictResponse = messageType('prediction.v1.PredictResponse');

/** Plain object → bytes. Field names in camel case. */
export function encodeMessage(type: protobuf.Type, value: object): Buffer {
  return Buffer.from(type.encode(type.fromObject(value)).finish());
}

/** Bytes → plain object with every default filled in. */
export function decodeMessage<T>(type: protobuf.Type, bytes: Uint8Array): T {
  return type.toObject(type.decode(bytes), { defaults: true, arrays: true, longs: Number }) as T;
}
