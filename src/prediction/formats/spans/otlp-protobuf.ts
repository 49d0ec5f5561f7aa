/** Reads an OTLP export of spans in protobuf. Field numbers are those of opentelemetry/proto/trace/v1/trace.proto. */
import { WireReader } from '../../../grpc/protobuf/wire-reader.ts';
import { checkParts } from './export-limits.ts';
import { type Attributes, type AttributeValue, type Span, STATUS_ERROR } from './span.ts';

const [VARINT, FIXED64, BYTES] = [0, 1, 2];
const tag = (field: number, wireType: number): number => (field << 3) | wireType;

/** Counts the messages inside an export, since an empty one takes only two bytes. */
class ExportReader extends WireReader {
  messages = 0;
}

/** Throws `invalid` for bytes that are not such a message, and `too_large` for too many parts. */
export function readOtlpProtobuf(bytes: Uint8Array): Span[] {
  const reader = new ExportReader(bytes);
  const spans: Span[] = [];
  eachField(reader, {
    [tag(1, BYTES)]: () => reader.readMessage(() => readResourceSpans(reader, spans)),
  });
  return spans;
}

type FieldReaders = Readonly<Record<number, () => void>>;

/** Skips unknown fields. */
function eachField(reader: ExportReader, readers: FieldReaders): void {
  checkParts(++reader.messages);
  while (reader.hasMore()) {
    const fieldTag = reader.readTag();
    const read = readers[fieldTag];
    if (read === undefined) reader.skip(fieldTag);
    else read();
  }
}

function readResourceSpans(reader: ExportReader, spans: Span[]): void {
  const resource = new Map<string, AttributeValue>();
  eachField(reader, {
    [tag(1, BYTES)]: () =>
      reader.readMessage(() => eachField(reader, { [tag(1, BYTES)]: () => readAttribute(reader, resource) })),
    [tag(2, BYTES)]: () =>
      reader.readMessage(() =>
        eachField(reader, { [tag(2, BYTES)]: () => spans.push(reader.readMessage(() => readSpan(reader, resource))) }),
      ),
  });
}

function readSpan(reader: ExportReader, resource: Attributes): Span {
  const attributes = new Map<string, AttributeValue>();
  let [traceId, spanId, startMs, code] = ['', '', 0, 0];
  eachField(reader, {
    [tag(1, BYTES)]: () => {
      traceId = readHex(reader);
    },
    [tag(2, BYTES)]: () => {
      spanId = readHex(reader);
    },
    [tag(7, FIXED64)]: () => {
      startMs = readFixed64(reader) / 1e6;
    },
    [tag(9, BYTES)]: () => readAttribute(reader, attributes),
    [tag(15, BYTES)]: () =>
      reader.readMessage(() =>
        eachField(reader, {
          [tag(3, VARINT)]: () => {
            code = reader.readInt32();
          },
        }),
      ),
  });
  return { traceId, spanId, startMs, isFailed: code === STATUS_ERROR, attributes, resource };
}

function readAttribute(reader: ExportReader, into: Map<string, AttributeValue>): void {
  let key = '';
  let value: AttributeValue | undefined;
  reader.readMessage(() =>
    eachField(reader, {
      [tag(1, BYTES)]: () => {
        key = reader.readString();
      },
      [tag(2, BYTES)]: () => {
        value = reader.readMessage(() => readValue(reader));
      },
    }),
  );
  if (value !== undefined) into.set(key, value);
}

/** Returns undefined for arrays, maps and bytes: no attribute that is read has such a value. */
function readValue(reader: ExportReader): AttributeValue | undefined {
  let value: AttributeValue | undefined;
  eachField(reader, {
    [tag(1, BYTES)]: () => {
      value = reader.readString();
    },
    [tag(2, VARINT)]: () => {
      value = reader.readInt64() !== 0;
    },
    [tag(3, VARINT)]: () => {
      value = reader.readInt64();
    },
    [tag(4, FIXED64)]: () => {
      value = reader.readDouble();
    },
  });
  return value;
}

function readHex(reader: ExportReader): string {
  const length = reader.readLength();
  const start = reader.position;
  reader.position = start + length;
  return Buffer.from(reader.bytes.subarray(start, start + length)).toString('hex');
}

function readFixed64(reader: ExportReader): number {
  const start = reader.position;
  // This checks that all eight bytes are there.
  reader.readDouble();
  return Number(reader.view.getBigUint64(start, true));
}
