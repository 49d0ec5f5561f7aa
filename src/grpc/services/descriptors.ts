/** Parses compiled `.proto` files into the services and messages that reflection lists. */
import { WireReader } from '../protobuf/wire-reader.ts';

/** A compiled `.proto` file: its bytes as compiled, and what the file declares. */
export interface ProtoFile {
  readonly name: string;
  /** The FileDescriptorProto, with the bytes that it has in the set. */
  readonly bytes: Uint8Array;
  readonly dependencies: readonly string[];
  /** Full names of messages, fields, enums, enum values, services and methods. */
  readonly symbols: readonly string[];
}

/** Splits a FileDescriptorSet (`buf build -o`) into its files. */
export function parseDescriptorSet(set: Uint8Array): readonly ProtoFile[] {
  const reader = new WireReader(set);
  const files: ProtoFile[] = [];
  while (reader.hasMore()) {
    const tag = reader.readTag();
    if (tag !== 0x0a) reader.skip(tag);
    else files.push(reader.readMessage((inner) => parseFile(inner, inner.bytes.subarray(inner.position, inner.end))));
  }
  return files;
}

/** FileDescriptorProto: name 1, package 2, dependency 3, message_type 4, enum_type 5, service 6. */
function parseFile(reader: WireReader, bytes: Uint8Array): ProtoFile {
  let name = '';
  let packageName = '';
  const dependencies: string[] = [];
  const declared: string[] = [];
  while (reader.hasMore()) {
    const tag = reader.readTag();
    if (tag === field(1)) name = reader.readString();
    else if (tag === field(2)) packageName = reader.readString();
    else if (tag === field(3)) dependencies.push(reader.readString());
    else if (tag === field(4)) declared.push(...readDeclared(reader, MESSAGE_PARTS));
    else if (tag === field(5)) declared.push(...readDeclared(reader, ENUM_PARTS));
    else if (tag === field(6)) declared.push(...readDeclared(reader, SERVICE_PARTS));
    else reader.skip(tag);
  }
  const scope = packageName === '' ? '' : `${packageName}.`;
  return { name, bytes, dependencies, symbols: declared.map((symbol) => scope + symbol) };
}

/** Which fields of a descriptor hold descriptors of named parts, and which parts those have in turn. */
interface Parts {
  readonly [fieldNumber: number]: Parts;
}

const NO_PARTS: Parts = {};
const ENUM_PARTS: Parts = { 2: NO_PARTS };
const SERVICE_PARTS: Parts = { 2: NO_PARTS };
/** DescriptorProto: field 2, nested_type 3, enum_type 4, oneof_decl 8. */
const MESSAGE_PARTS: Parts = {
  2: NO_PARTS,
  get 3() {
    return MESSAGE_PARTS;
  },
  4: ENUM_PARTS,
  8: NO_PARTS,
};

/** Collects the name of a descriptor (always field 1) and the names of its parts. */
function readDeclared(reader: WireReader, parts: Parts): string[] {
  return reader.readMessage((inner) => {
    let name = '';
    const declared: string[] = [];
    while (inner.hasMore()) {
      const tag = inner.readTag();
      const part = (tag & 7) === 2 ? parts[tag >>> 3] : undefined;
      if (tag === field(1)) name = inner.readString();
      else if (part !== undefined) declared.push(...readDeclared(inner, part));
      else inner.skip(tag);
    }
    return [name, ...declared.map((symbol) => `${name}.${symbol}`)];
  });
}

/** Tag of a length-delimited field. */
function field(fieldNumber: number): number {
  return (fieldNumber << 3) | 2;
}
