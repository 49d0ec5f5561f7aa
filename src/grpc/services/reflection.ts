/** Serves gRPC reflection, by which clients such as grpcurl list services and messages. */
import { Failure, isFailure } from '../../errors.ts';
import type { GrpcService } from '../call/service.ts';
import { WireReader } from '../protobuf/wire-reader.ts';
import { WireWriter } from '../protobuf/wire-writer.ts';
import { toStatus } from '../protocol/status.ts';
import { type ProtoFile, parseDescriptorSet } from './descriptors.ts';

/** The two versions differ in their package only: the messages are the same on the wire. */
const SERVICE_NAMES = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

/** A request for reflection: a field of the oneof in ServerReflectionRequest, and its text. */
interface Question {
  readonly fieldNumber: number;
  readonly text: string;
}

/** The longest request. The answer repeats it, and takes as much memory until the client reads it. */
const MAX_REQUEST_BYTES = 16_384;
const FILE_BY_FILENAME = 3;
const FILE_CONTAINING_SYMBOL = 4;
const LIST_SERVICES = 7;

/**
 * Server reflection over a compiled descriptor set. The files are answered as they were compiled, under the names and
 * with the options they have in `proto/`. The usual package is not used because it rebuilds them.
 */
export function createReflection(descriptorSet: Uint8Array, serviceNames: readonly string[]): readonly GrpcService[] {
  const index = createIndex(parseDescriptorSet(descriptorSet), [...serviceNames, ...SERVICE_NAMES]);
  return SERVICE_NAMES.map((name) => ({
    name,
    methods: [
      {
        kind: 'stream',
        name: 'ServerReflectionInfo',
        keepsNoBytes: true,
        maxMessageBytes: MAX_REQUEST_BYTES,
        async *handle(requests) {
          for await (const request of requests) yield answer(request, index);
        },
      },
    ],
  }));
}

interface Index {
  readonly services: readonly string[];
  readonly fileByName: ReadonlyMap<string, ProtoFile>;
  readonly fileBySymbol: ReadonlyMap<string, ProtoFile>;
}

function createIndex(files: readonly ProtoFile[], services: readonly string[]): Index {
  return {
    services: [...services].sort(),
    fileByName: new Map(files.map((file) => [file.name, file])),
    fileBySymbol: new Map(files.flatMap((file) => file.symbols.map((symbol) => [symbol, file]))),
  };
}

/** ServerReflectionResponse: valid_host 1, original_request 2, then one of 4 (files), 6 (services), 7 (error). */
function answer(request: Uint8Array, index: Index): Uint8Array {
  const { host, question } = readRequest(request);
  const response = new WireWriter().string(1, host).bytes(2, request);
  try {
    return writeAnswer(response, question, index).finish();
  } catch (error) {
    if (!isFailure(error)) throw error;
    const { code, details } = toStatus(error, '-');
    return response.message(7, new WireWriter().count(1, code).string(2, details)).finish();
  }
}

function writeAnswer(response: WireWriter, question: Question, index: Index): WireWriter {
  if (question.fieldNumber === LIST_SERVICES) return response.message(6, listServices(index));
  if (question.fieldNumber === FILE_BY_FILENAME)
    return response.message(4, writeFiles(index.fileByName.get(question.text), question, index));
  if (question.fieldNumber === FILE_CONTAINING_SYMBOL)
    return response.message(4, writeFiles(index.fileBySymbol.get(question.text), question, index));
  throw new Failure('not_found', 'Cannot describe extensions: this server has no extensions');
}

function listServices(index: Index): WireWriter {
  const list = new WireWriter();
  for (const name of index.services) list.message(1, new WireWriter().string(1, name));
  return list;
}

/** The file and everything it imports, so that one question is enough. */
function writeFiles(file: ProtoFile | undefined, question: Question, index: Index): WireWriter {
  if (file === undefined) throw new Failure('not_found', `Cannot describe "${question.text}": it is not known here`);
  const files = new Set([file]);
  for (const { dependencies } of files)
    for (const name of dependencies) {
      const dependency = index.fileByName.get(name);
      if (dependency !== undefined) files.add(dependency);
    }
  const list = new WireWriter();
  for (const { bytes } of files) list.bytes(1, bytes);
  return list;
}

/** ServerReflectionRequest: host 1, and the question. The last one wins, as in any oneof. */
function readRequest(request: Uint8Array): { host: string; question: Question } {
  const reader = new WireReader(request);
  let host = '';
  let question: Question = { fieldNumber: 0, text: '' };
  while (reader.hasMore()) {
    const tag = reader.readTag();
    const fieldNumber = tag >>> 3;
    if (tag === 0x0a) host = reader.readString();
    else if ((tag & 7) === 2 && isTextQuestion(fieldNumber)) question = { fieldNumber, text: reader.readString() };
    else reader.skip(tag);
  }
  return { host, question };
}

function isTextQuestion(fieldNumber: number): boolean {
  return fieldNumber === FILE_BY_FILENAME || fieldNumber === FILE_CONTAINING_SYMBOL || fieldNumber === LIST_SERVICES;
}
